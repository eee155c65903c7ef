; trees.scm - binary trees by the million: the collector's classic.
;
; One big tree lives from beginning to end; beside it, many more are built,
; counted and dropped.

(define (make-tree depth)
  (if (= depth 0)
      '()
      (cons (make-tree (- depth 1)) (make-tree (- depth 1)))))

(define (count-nodes tree)
  (if (null? tree)
      0
      (+ 1 (count-nodes (car tree)) (count-nodes (cdr tree)))))

(define (count-many trees depth)
  (let loop ((i 0) (sum 0))
    (if (= i trees)
        sum
        (loop (+ i 1) (+ sum (count-nodes (make-tree depth)))))))

(define max-depth 19)
(define long-lived (make-tree max-depth))

(do ((depth 4 (+ depth 4)))
    ((> depth max-depth))
  (let ((trees (expt 2 (- max-depth depth -2))))
    (display trees) (display " trees of depth ") (display depth)
    (display ": ") (display (count-many trees depth))
    (display " nodes") (newline)))

(display "long-lived tree: ")
(display (count-nodes long-lived)) (display " nodes") (newline)
