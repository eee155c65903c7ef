; words.scm - strings: building, splitting, joining, sorting, counting.

(define (join strings between)
  (if (null? strings)
      ""
      (let loop ((l (cdr strings)) (parts (list (car strings))))
        (if (null? l)
            (apply string-append (reverse parts))
            (loop (cdr l) (cons (car l) (cons between parts)))))))

(define (split text)
  (let loop ((start 0) (end 0) (words '()))
    (cond ((= end (string-length text))
           (reverse (cons (substring text start) words)))
          ((char=? (string-ref text end) #\space)
           (loop (+ end 1) (+ end 1) (cons (substring text start end) words)))
          (else (loop start (+ end 1) words)))))

(define (reverse-string s)
  (list->string (reverse (string->list s))))

; A word of syllables, the same words in every run.
(define seed 42)
(define (pick n)
  (set! seed (modulo (+ (* seed 1103515245) 12345) 2147483648))
  (modulo (quotient seed 65536) n))

(define syllables #("ka" "to" "mi" "ra" "ne" "lo" "su" "pe"))

(define (make-word)
  (let loop ((n (+ 1 (pick 2))) (word ""))
    (let ((word (string-append word (vector-ref syllables (pick 8)))))
      (if (= n 0) word (loop (- n 1) word)))))

(define text
  (join (let loop ((i 0) (l '())) (if (= i 150000) l (loop (+ i 1) (cons (make-word) l))))
        " "))
(display "text: ") (display (string-length text)) (display " characters") (newline)

(define words (split text))
(display "words: ") (display (length words)) (newline)
(display "joined again it is the same: ")
(display (string=? text (join words " "))) (newline)

(define (merge a b less?)
  (let loop ((a a) (b b) (merged '()))
    (cond ((null? a) (append (reverse merged) b))
          ((or (null? b) (not (less? (car b) (car a))))
           (loop (cdr a) b (cons (car a) merged)))
          (else (loop a (cdr b) (cons (car b) merged))))))

; Lists of one are sorted; two neighbours are merged until one list is left.
(define (sort l less?)
  (define (pairwise lists)
    (cond ((null? lists) '())
          ((null? (cdr lists)) lists)
          (else (cons (merge (car lists) (cadr lists) less?)
                      (pairwise (cddr lists))))))
  (let loop ((lists (map list l)))
    (if (null? (cdr lists)) (car lists) (loop (pairwise lists)))))

; Count by sorting: equal words become neighbours.
(define (count-sorted words)
  (let loop ((l words) (counts '()))
    (cond ((null? l) counts)
          ((and (pair? counts) (string=? (car l) (caar counts)))
           (loop (cdr l) (cons (cons (caar counts) (+ 1 (cdar counts))) (cdr counts))))
          (else (loop (cdr l) (cons (cons (car l) 1) counts))))))

(define counts (count-sorted (sort words string<?)))
(display "different: ") (display (length counts)) (newline)

(define (most-frequent counts n)
  (let loop ((l (sort counts
                      (lambda (a b)
                        (or (> (cdr a) (cdr b))
                            (and (= (cdr a) (cdr b)) (string<? (car a) (car b)))))))
             (n n))
    (unless (or (= n 0) (null? l))
      (display "  ") (display (caar l)) (display " ") (display (cdar l)) (newline)
      (loop (cdr l) (- n 1)))))
(most-frequent counts 5)

(define backwards (reverse-string text))
(display "backwards twice it is the same: ")
(display (string=? text (reverse-string backwards))) (newline)

; A string grown one piece at a time: every step copies what is there.
(define (grow n)
  (do ((i 0 (+ i 1)) (s "" (string-append s (number->string i) ","))) ((= i n) s)))
(display "grown: ") (display (string-length (grow 5000))) (newline)
