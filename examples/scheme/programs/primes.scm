; primes.scm - vectors and streams: a sieve, and numbers on demand.

(define (sieve limit)
  (let ((composite (make-vector (+ limit 1) #f)))
    (do ((i 2 (+ i 1))) ((> (* i i) limit))
      (unless (vector-ref composite i)
        (do ((j (* i i) (+ j i))) ((> j limit))
          (vector-set! composite j #t))))
    (do ((i limit (- i 1))
         (primes '() (if (vector-ref composite i) primes (cons i primes))))
        ((< i 2) primes))))

; A stream is a pair of a number and a procedure that makes the rest.
(define (rest s) ((cdr s)))

(define (stream-filter keep? s)
  (if (keep? (car s))
      (cons (car s) (lambda () (stream-filter keep? (rest s))))
      (stream-filter keep? (rest s))))

(define (numbers-from n)
  (cons n (lambda () (numbers-from (+ n 1)))))

(define (lazy-sieve s)
  (cons (car s)
        (lambda ()
          (lazy-sieve
           (stream-filter (lambda (n) (not (= 0 (remainder n (car s)))))
                          (rest s))))))

(define (stream-head s n)
  (let loop ((s s) (n n) (l '()))
    (if (= n 0)
        (reverse l)
        (loop (rest s) (- n 1) (cons (car s) l)))))

(define primes (sieve 2000000))
(display "primes below 2000000: ") (display (length primes)) (newline)
(display "the last: ") (display (list-ref primes (- (length primes) 1))) (newline)

(define lazy (stream-head (lazy-sieve (numbers-from 2)) 500))
(display "lazily: ") (display (list-tail lazy 490)) (newline)
(display "both ways the same: ")
(display (equal? lazy (let loop ((n 500) (l primes))
                        (if (= n 0) '() (cons (car l) (loop (- n 1) (cdr l)))))))
(newline)

; Goldbach: every even number is a sum of two primes.
(define prime?
  (let ((is (make-vector 2000001 #f)))
    (for-each (lambda (p) (vector-set! is p #t)) primes)
    (lambda (n) (vector-ref is n))))

(define (goldbach n)
  (let loop ((l primes))
    (if (prime? (- n (car l))) (car l) (loop (cdr l)))))

(define (hardest limit)
  (let loop ((n 4) (best 4) (least 2))
    (if (> n limit)
        (list best least)
        (let ((p (goldbach n)))
          (if (> p least) (loop (+ n 2) n p) (loop (+ n 2) best least))))))
(display "hardest even number below 400000: ") (display (hardest 400000)) (newline)
