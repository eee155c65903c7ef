; queens.scm - n queens by lists: many short-lived pairs and closures.

(define (safe? row distance placed)
  (or (null? placed)
      (let ((other (car placed)))
        (and (not (= other row))
             (not (= (abs (- other row)) distance))
             (safe? row (+ distance 1) (cdr placed))))))

; All boards, each a list of rows with the last column first.
(define (queens size)
  (define (place column)
    (if (= column 0)
        '(())
        (flat-map
         (lambda (placed)
           (let loop ((row (- size 1)) (boards '()))
             (cond ((< row 0) boards)
                   ((safe? row 1 placed)
                    (loop (- row 1) (cons (cons row placed) boards)))
                   (else (loop (- row 1) boards)))))
         (place (- column 1)))))
  (place size))

(define (flat-map f l)
  (apply append (map f l)))

(define (show board)
  (for-each
   (lambda (row)
     (do ((column 0 (+ column 1))) ((= column (length board)))
       (display (if (= column row) " Q" " .")))
     (newline))
   board))

(do ((size 4 (+ size 1))) ((> size 10))
  (let ((boards (queens size)))
    (display size) (display " queens: ")
    (display (length boards)) (display " boards") (newline)
    (when (= size 8) (show (car boards)))))
