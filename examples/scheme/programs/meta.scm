; meta.scm - Scheme in Scheme: an interpreter that runs an interpreter.
;
; Environments are lists of frames, frames are association lists; all of it
; is garbage a moment later.

(define (lookup name env)
  (if (null? env)
      (error "meta: undefined" name)
      (let ((entry (assq name (car env))))
        (if entry (cdr entry) (lookup name (cdr env))))))

(define (extend names values env)
  (cons (map cons names values) env))

(define (run e env)
  (cond ((symbol? e) (lookup e env))
        ((not (pair? e)) e)
        ((eq? (car e) 'quote) (cadr e))
        ((eq? (car e) 'if)
         (run (if (run (cadr e) env) (caddr e) (cadddr e)) env))
        ((eq? (car e) 'lambda)
         (lambda args (run-all (cddr e) (extend (cadr e) args env))))
        ((eq? (car e) 'let)
         (run-all (cddr e)
                  (extend (map car (cadr e))
                          (map (lambda (b) (run (cadr b) env)) (cadr e))
                          env)))
        ((eq? (car e) 'define)
         (set-car! env (cons (cons (cadr e) (run (caddr e) env)) (car env))))
        (else
         (apply (run (car e) env)
                (map (lambda (a) (run a env)) (cdr e))))))

(define (run-all forms env)
  (if (null? (cdr forms))
      (run (car forms) env)
      (begin
        (run (car forms) env)
        (run-all (cdr forms) env))))

(define (fresh-environment)
  (list (map cons
             '(+ - * < = car cdr cons null? list not)
             (list + - * < = car cdr cons null? list not))))

(define (show name value)
  (display name) (display ": ") (write value) (newline))

(show "fib 23"
      (run-all
       '((define fib
           (lambda (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))))
         (fib 23))
       (fresh-environment)))

(show "factorial 15"
      (run-all
       '((define y
           (lambda (f)
             ((lambda (g) (g g))
              (lambda (g) (f (lambda (n) ((g g) n)))))))
         ((y (lambda (self) (lambda (n) (if (= n 0) 1 (* n (self (- n 1)))))))
          15))
       (fresh-environment)))

(show "quicksort"
      (run-all
       '((define append2
           (lambda (a b) (if (null? a) b (cons (car a) (append2 (cdr a) b)))))
         (define keep
           (lambda (f l)
             (if (null? l)
                 '()
                 (if (f (car l))
                     (cons (car l) (keep f (cdr l)))
                     (keep f (cdr l))))))
         (define sort
           (lambda (l)
             (if (null? l)
                 '()
                 (let ((p (car l)) (rest (cdr l)))
                   (append2 (sort (keep (lambda (x) (< x p)) rest))
                            (cons p (sort (keep (lambda (x) (not (< x p))) rest))))))))
         (sort '(31 41 59 26 53 58 97 93 23 84 62 64 33 83 27 95)))
       (fresh-environment)))

; Two levels deep: the program that is interpreted is a machine of its own,
; with an accumulator and a list of instructions.
(show "a machine"
      (run-all
       '((define machine
           (lambda (code acc)
             (if (null? code)
                 acc
                 (let ((op (car (car code))) (x (cdr (car code))))
                   (machine (cdr code)
                            (if (= op 0)
                                (+ acc x)
                                (if (= op 1) (* acc x) (- acc x))))))))
         (define repeat
           (lambda (n sum)
             (if (= n 0)
                 sum
                 (repeat (- n 1)
                         (+ sum (machine '((0 . 5) (1 . 3) (2 . 4)) n))))))
         (repeat 5000 0))
       (fresh-environment)))
