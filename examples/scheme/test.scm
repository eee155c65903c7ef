; test.scm - a self-checking tour of every special form and primitive.
;
; A check that fails prints itself; the last line is what test.sh reads.

(define passed 0)
(define failed 0)

(define (check name got expected)
  (if (equal? got expected)
      (set! passed (+ passed 1))
      (begin
        (set! failed (+ failed 1))
        (display "wrong: ") (display name)
        (display ": ") (write got)
        (display ", expected ") (write expected)
        (newline))))

; ---- special forms

(check 'quote '(a . b) (cons 'a 'b))
(check 'if (list (if #t 1 2) (if #f 1 2) (if '() 1 2) (if 0 1 2)) '(1 2 1 1))
(check 'cond
       (map (lambda (x)
              (cond ((assv x '((1 . one) (2 . two))) => cdr)
                    ((= x 3) 'three 'last)
                    ((= x 4))
                    (else 'other)))
            '(1 2 3 4 5))
       '(one two last #t other))
(check 'and (list (and) (and 1) (and 1 2) (and 1 #f 2)) '(#t 1 2 #f))
(check 'or (list (or) (or 1) (or #f 2) (or #f #f)) '(#f 1 2 #f))
(check 'when (list (when #t 1 2) (when (= 1 1) 'y)) '(2 y))
(check 'unless (unless #f 1 2) 2)
(check 'let (let ((x 1) (y 2)) (let ((x y) (y x)) (list x y))) '(2 1))
(check 'let* (let* ((x 1) (y (+ x 1)) (x (* y 10))) (list x y)) '(20 2))
(check 'let*-empty (let* () 5) 5)
(check 'letrec
       (letrec ((even? (lambda (n) (if (= n 0) #t (odd? (- n 1)))))
                (odd? (lambda (n) (if (= n 0) #f (even? (- n 1))))))
         (list (even? 1000) (odd? 1000)))
       '(#t #f))
(check 'begin (begin 1 2 3) 3)
(check 'lambda-rest
       (list ((lambda x x) 1 2) ((lambda (a . b) (list a b)) 1)
             ((lambda (a b . c) c) 1 2 3 4))
       '((1 2) (1 ()) (3 4)))
(check 'do
       (do ((i 0 (+ i 1)) (sum 0 (+ sum i)) (k 'same)) ((= i 5) (list sum k)))
       '(10 same))
(check 'do-closures
       (map (lambda (f) (f))
            (do ((i 0 (+ i 1)) (l '() (cons (lambda () i) l)))
                ((= i 3) (reverse l))))
       '(0 1 2))
; ---- variables and frames

(define (iota n)
  (do ((n (- n 1) (- n 1)) (l '() (cons n l))) ((< n 0) l)))

(define (make-counter)
  (let ((n 0))
    (lambda () (set! n (+ n 1)) n)))
(define c1 (make-counter))
(define c2 (make-counter))
(c1)
(check 'set!-closures (list (c1) (c1) (c2)) '(2 3 1))

(define (inner-defines x)
  (define a 1)
  (define (b y) (+ y a x))
  (define c (b 10))
  (set! a 100)
  (list a (b 1) c))
(check 'inner-defines (inner-defines 5) '(100 106 16))

(define (sibling-lets)
  (let ((x 1))
    (let ((get (lambda () x)))
      (let ((a (let ((y 2)) y)) (b (let ((z 3)) (lambda () z))))
        (list (get) a (b))))))
(check 'sibling-lets (sibling-lets) '(1 2 3))

(check 'shadowed-syntax (let ((if list)) (if 1 2 3)) '(1 2 3))
(check 'shadowed-primitive (let ((car cdr)) (car '(1 2))) '(2))
(check 'hygiene (let ((if list) (let list)) (cond ((assv 1 '((1 2))) => cdr) (else 0)))
       '(2))
(check 'many-parameters
       ((lambda (a b c d e f g h i j k l m n o p q r) (list a r)) 1 2 3 4 5 6 7
        8 9 10 11 12 13 14 15 16 17 18)
       '(1 18))
(check 'many-rest
       (let ((l (iota 100)))
         (list (apply + l) (length (apply (lambda r r) l))
               (apply (lambda (a b . r) (length r)) l)))
       '(4950 100 98))
(check 'fourteen-rest
       (map (lambda (n) (apply (lambda (a . r) (length r)) (iota n)))
            '(1 11 12 13 14 15 16))
       '(0 10 11 12 13 14 15))
(check 'many-locals
       (let ((a 1) (b 2) (c 3) (d 4) (e 5) (f 6) (g 7) (h 8) (i 9) (j 10)
             (k 11) (l 12) (m 13) (n 14) (o 15) (p 16))
         (+ a b c d e f g h i j k l m n o p))
       136)
(check 'three-frames
       ((((lambda (a) (lambda (b) (lambda (c) (set! a (+ a 1)) (list a b c))))
          1) 2) 3)
       '(2 2 3))

; ---- loops: in the frame, and with closures

(check 'named-let (let loop ((i 0) (l '())) (if (= i 3) l (loop (+ i 1) (cons i l))))
       '(2 1 0))
(check 'named-let-recursion
       (let loop ((i 0)) (if (= i 3) '() (cons i (loop (+ i 1)))))
       '(0 1 2))
(check 'named-let-value (let loop ((i 3)) (if (= i 0) (procedure? loop) (loop (- i 1))))
       #t)
(check 'nested-loops
       (let outer ((i 0) (l '()))
         (if (= i 3)
             (reverse l)
             (let inner ((j 0) (l l))
               (if (= j 2)
                   (outer (+ i 1) l)
                   (inner (+ j 1) (cons (list i j) l))))))
       '((0 0) (0 1) (1 0) (1 1) (2 0) (2 1)))
(check 'loop-in-operand
       (+ 1 (let loop ((i 0)) (if (< i 10) (loop (+ i 1)) i)) 100)
       111)
(check 'loop-simultaneous
       (let loop ((a 1) (b 2) (n 3)) (if (= n 0) (list a b) (loop b a (- n 1))))
       '(2 1))
(check 'loop-captures
       (map (lambda (f) (f))
            (let loop ((i 0) (l '()))
              (if (= i 3)
                  (reverse l)
                  (let ((j (* i i))) (loop (+ i 1) (cons (lambda () j) l))))))
       '(0 1 4))
(check 'loop-inner-define
       (let loop ((i 0) (sum 0))
         (define twice (* 2 i))
         (if (= i 4) sum (loop (+ i 1) (+ sum twice))))
       12)
(check 'loop-set!
       (let loop ((i 0)) (set! i (+ i 1)) (if (< i 10) (loop i) i))
       10)

; ---- tail calls in constant stack, a million times each

(define (count-down n) (if (= n 0) 'done (count-down (- n 1))))
(check 'tail-if (count-down 1000000) 'done)
(define (ping n) (cond ((= n 0) 'ping) (else (pong (- n 1)))))
(define (pong n) (and #t (or #f (when #t (let ((m (- n 1))) (begin (ping m)))))))
(check 'tail-mutual (ping 1000000) 'ping)
(define (by-apply n) (if (= n 0) 'applied (apply by-apply (list (- n 1)))))
(check 'tail-apply (by-apply 1000000) 'applied)
(check 'tail-loop (let loop ((i 0)) (if (< i 1000000) (loop (+ i 1)) i)) 1000000)
(define (by-arrow n) (cond ((= n 0) 'arrow) ((- n 1) => by-arrow)))
(check 'tail-arrow (by-arrow 1000000) 'arrow)
(check 'recursion-of-50000
       (let loop ((i 0)) (if (= i 50000) 0 (+ 1 (loop (+ i 1)))))
       50000)

; ---- pairs and lists

(check 'cxr
       (let ((l '((1 2) (3 4) 5 6)))
         (list (car l) (cdr l) (caar l) (cadr l) (cdar l) (cddr l) (caddr l)
               (cdddr l) (cadddr l)))
       '((1 2) ((3 4) 5 6) 1 (3 4) (2) (5 6) 5 (6) 6))
(define p (cons 1 2))
(set-car! p 'a)
(set-cdr! p 'b)
(check 'set-pair p '(a . b))
(check 'list-predicates
       (list (pair? p) (pair? '()) (null? '()) (null? p) (list? '(1 2))
             (list? p) (list? '()))
       '(#t #f #t #f #t #f #t))
(define circle (list 1 2 3))
(set-cdr! (cddr circle) circle)
(check 'circle (list? circle) #f)
(check 'list (list 1 (list) "x") '(1 () "x"))
(check 'length (list (length '()) (length '(1 2 3))) '(0 3))
(check 'append
       (list (append) (append '(1)) (append '(1) '(2 3) '() '(4)) (append '(1) 2)
             (append '() '()))
       '(() (1) (1 2 3 4) (1 . 2) ()))
(check 'reverse (reverse '(1 2 3)) '(3 2 1))
(check 'list-tail (list (list-tail '(1 2 3) 1) (list-ref '(1 2 3) 2)) '((2 3) 3))
(check 'memq (list (memq 'c '(a b c d)) (memq 'z '(a))) '((c d) #f))
(check 'memv (memv 1.5 '(1 1.5 2)) '(1.5 2))
(check 'member (member "b" '("a" "b")) '("b"))
(check 'assq (list (assq 'b '((a 1) (b 2))) (assq 'z '())) '((b 2) #f))
(check 'assv (assv 2 '((1 one) (2 two))) '(2 two))
(check 'assoc (assoc '(1) '(((1) one))) '((1) one))
(check 'map (list (map + '(1 2 3) '(10 20 30)) (map car '()) (map + '(1 2) '(1)))
       '((11 22 33) () (2)))
(check 'for-each
       (let ((sum 0)) (for-each (lambda (x y) (set! sum (+ sum (* x y)))) '(1 2) '(3 4)) sum)
       11)
(check 'apply (list (apply + '()) (apply list 1 2 '(3)) (apply max '(3 9 2)))
       '(0 (1 2 3) 9))
; ---- equality

(check 'eq (list (eq? 'a 'a) (eq? '() '()) (eq? "a" "a") (eq? 5 5)) '(#t #t #f #t))
(check 'eqv (list (eqv? 1.5 1.5) (eqv? 1 1.0) (eqv? "a" "a")) '(#t #f #f))
(check 'equal
       (list (equal? '(1 (2 "x") #(3 #\a)) (list 1 (list 2 "x") (vector 3 #\a)))
             (equal? '(1) '(2)) (equal? #(1) #(1 2)) (equal? "a" "b"))
       '(#t #f #f #f))

; ---- numbers

(check 'arithmetic
       (list (+) (+ 1) (+ 1 2 3) (- 5) (- 5 1 1) (*) (* 2 3 4) (/ 6 3) (/ 1 2) (/ 4))
       '(0 1 6 -5 3 1 24 2 0.5 0.25))
(check 'division
       (list (quotient 7 2) (quotient -7 2) (remainder -7 2) (modulo -7 2)
             (modulo 7 -2) (modulo -6 2) (quotient -7 -2))
       '(3 -3 -1 1 -1 0 3))
(check 'comparison
       (list (= 1 1 1) (= 1 2) (< 1 2 3) (< 1 3 2) (> 3 2 1) (<= 1 1 2) (>= 2 1 1)
             (< 1 1.5) (= 2 2.0) (>= 1 2))
       '(#t #f #t #f #t #t #t #t #t #f))
(check 'extremes (list (max 1 5 3) (min 4 2 8) (max 1 2.5) (max 3 2.5 1) (abs -3) (abs 2.5))
       '(5 2 2.5 3 3 2.5))
(check 'predicates
       (map (lambda (f) (f 4))
            (list number? integer? zero?
                  odd? even? string?))
       '(#t #t #f #f #t #f))
(check 'integers (list (integer? 2.0) (integer? 2.5) (integer? 'a)) '(#t #f #f))
(check 'expt (list (expt 2 10) (expt 2.0 3) (expt 2 -1) (expt 7 0)) '(1024 8.0 0.5 1))
(check 'sqrt (list (sqrt 16) (sqrt 2.25)) '(4 1.5))
(check 'functions (list (exp 0) (sin 0) (cos 0)) '(1.0 0.0 1.0))
; Only exact numbers print without a point or an exponent.
(define (exact? n)
  (let loop ((l (string->list (number->string n))))
    (or (null? l) (and (not (memv (car l) '(#\. #\e))) (loop (cdr l))))))
(define most 4611686018427387903)
(define least -4611686018427387904)
(check 'overflow
       (list (exact? most) (exact? (+ most 1)) (exact? (- least 1)) (exact? (* most 2))
             (= (+ most 1) (expt 2. 62)) (exact? (- least)) (exact? (quotient least -1))
             (exact? (* least 1)) (- (+ least 1)) (exact? (* 3037000500 3037000500)))
       '(#t #f #f #f #t #f #f #t 4611686018427387903 #f))
(check 'overflow-inline
       (let loop ((i 0) (x 1)) (if (= i 70) (= x (expt 2. 70)) (loop (+ i 1) (* x 2))))
       #t)
(check 'number->string
       (list (number->string 255) (number->string -5) (number->string 1.5)
             (number->string 0.1) (number->string 1e100) (number->string 100.0))
       '("255" "-5" "1.5" "0.1" "1e+100" "100.0"))
(check 'string->number
       (list (string->number "42") (string->number "-1.5e2") (string->number "ff")
             (string->number "abc") (string->number "-") (string->number "1/2")
             (string->number "9999999999999999999") (string->number ""))
       '(42 -150.0 #f #f #f #f 1e19 #f))
(check 'literals (list .5 -0.5 +7 1e3 '- '+ '...) '(0.5 -0.5 7 1000.0 - + ...))

; ---- characters, strings, symbols

(check 'char
       (list (char->integer #\A) (integer->char 97) (char=? #\a #\a) (char<? #\b #\a)
             (char? #\newline) (char? 1))
       '(65 #\a #t #f #t #f))
(define s (make-string 3 #\-))
(string-set! s 1 #\x)
(check 'string-set! s "-x-")
(check 'strings
       (list (string-length "abc") (string-ref "abc" 2)
             (string-append "a" "" "bc") (substring "hello" 1 3) (substring "hello" 2))
       '(3 #\c "abc" "el" "llo"))
(check 'string-order
       (list (string=? "a" "a") (string=? "a" "b") (string<? "a" "ab") (string<? "b" "ab"))
       '(#t #f #t #f))
(check 'string-lists (list (string->list "ab") (list->string '(#\x #\y))) '((#\a #\b) "xy"))
(check 'symbols
       (list (symbol->string 'abc) (string->symbol "x y") (symbol? 'a) (symbol? "a")
             (eq? 'abc (string->symbol "abc")))
       (list "abc" (string->symbol "x y") #t #f #t))
(check 'type-predicates
       (list (string? "a") (vector? #(1)) (procedure? car) (procedure? (lambda () 1))
             (procedure? 'car) (boolean? #f) (boolean? 0) (not #f) (not 0) (null? #f))
       '(#t #t #t #t #f #t #f #t #f #f))
(check 'escapes (string-length "a\"b\\c\n") 6)
(check 'comments '(1 ; 4
                     5;6
                     ) '(1 5))

; ---- vectors

(define v (make-vector 3 0))
(vector-set! v 0 'a)
(check 'vector-set! v #(a 0 0))
(check 'vectors
       (list (vector 1 2) (vector-ref #(1 2 3) 1) (vector-length #(1 2)) (vector->list #(1 2))
             (list->vector '(1 2)))
       '(#(1 2) 2 2 (1 2) #(1 2)))
(define big (make-vector 100000 '()))
(do ((i 0 (+ i 1))) ((= i 100000)) (vector-set! big i (list i)))
(gc)
(check 'large-vector
       (do ((i 0 (+ i 1)) (wrong 0 (if (equal? (vector-ref big i) (list i)) wrong (+ wrong 1))))
           ((= i 100000) wrong))
       0)

; ---- the rest

(define (redefined x) (vector-ref x 0))
(define old-vector-ref vector-ref)
(check 'before-redefinition (redefined #(1)) 1)
(define (vector-ref v i) 'mine)
(check 'redefinition (redefined #(1)) 'mine)
(set! vector-ref old-vector-ref)
(check 'after-redefinition (redefined #(1)) 1)
(define (when x) (list 'mine x))
(check 'redefined-syntax (when 1) '(mine 1))

(display passed) (display " passed, ") (display failed) (display " failed")
(newline)
