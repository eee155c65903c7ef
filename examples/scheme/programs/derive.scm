; derive.scm - symbolic derivatives: rewriting trees of symbols and numbers.
;
; Each derivative is simplified by rules until nothing changes, then the
; result is checked against a numeric derivative.

(define (is? e operator) (eq? (car e) operator))

(define (sum a b)
  (cond ((and (number? a) (number? b)) (+ a b))
        ((eqv? a 0) b)
        ((eqv? b 0) a)
        ((equal? a b) (product 2 a))
        ((number? b) (sum b a))
        (else (list '+ a b))))

(define (product a b)
  (cond ((and (number? a) (number? b)) (* a b))
        ((or (eqv? a 0) (eqv? b 0)) 0)
        ((eqv? a 1) b)
        ((eqv? b 1) a)
        ((number? b) (product b a))
        ((and (number? a) (pair? b) (eq? (car b) '*) (number? (cadr b)))
         (product (* a (cadr b)) (caddr b)))
        ((equal? a b) (power a 2))
        (else (list '* a b))))

(define (power a n)
  (cond ((eqv? n 0) 1)
        ((eqv? n 1) a)
        ((and (number? a) (number? n)) (expt a n))
        ((and (pair? a) (eq? (car a) '^)) (power (cadr a) (* n (caddr a))))
        (else (list '^ a n))))

(define (derive e x)
  (cond ((number? e) 0)
        ((symbol? e) (if (eq? e x) 1 0))
        (else
         (let ((a (cadr e)))
           (cond
            ((is? e '+) (sum (derive a x) (derive (caddr e) x)))
            ((is? e '*) (let ((b (caddr e)))
                          (sum (product (derive a x) b) (product a (derive b x)))))
            ((is? e '^) (let ((n (caddr e)))
                          (product n (product (power a (- n 1)) (derive a x)))))
            ((is? e 'sin) (product (list 'cos a) (derive a x)))
            ((is? e 'cos) (product -1 (product (list 'sin a) (derive a x))))
            ((is? e 'exp) (product e (derive a x)))
            (else (error "derive: unknown operator" (car e))))))))

(define (simplify e)
  (if (not (pair? e))
      e
      (let* ((args (map simplify (cdr e)))
             (next (cond ((is? e '+) (apply sum args))
                         ((is? e '*) (apply product args))
                         ((is? e '^) (apply power args))
                         (else (cons (car e) args)))))
        (if (equal? next e) e (simplify next)))))

(define (value-at e x)
  (cond ((number? e) e)
        ((symbol? e) x)
        (else
         (let ((a (value-at (cadr e) x)))
           (cond ((is? e '+) (+ a (value-at (caddr e) x)))
                 ((is? e '*) (* a (value-at (caddr e) x)))
                 ((is? e '^) (expt a (caddr e)))
                 ((is? e 'sin) (sin a))
                 ((is? e 'cos) (cos a))
                 ((is? e 'exp) (exp a)))))))

(define (size e)
  (if (pair? e) (apply + 1 (map size (cdr e))) 1))

(define (nth-derivative e n)
  (do ((i 0 (+ i 1)) (e e (simplify (derive e 'x)))) ((= i n) e)))

; The derivative agrees with a difference of two near values.
(define (agrees? e)
  (let* ((h 1e-6)
         (slope (/ (- (value-at e (+ .5 h)) (value-at e (- .5 h))) (* 2 h)))
         (exact (value-at (derive e 'x) .5)))
    (< (abs (- slope exact)) (* 1e-4 (+ 1 (abs exact))))))

(define formulas
  '((^ x 5)
    (* (^ x 3) (+ x 2))
    (sin (* 2 x))
    (* x (exp (* -1 x)))
    (* (sin x) (exp x))
    (exp (sin (^ x 2)))))

(for-each
 (lambda (e)
   (let ((d (simplify (derive e 'x))))
     (write e) (display "  ->  ") (write d)
     (display (if (agrees? e) "  agrees" "  DIFFERS")) (newline)))
 formulas)

(for-each
 (lambda (n)
   (display "size of derivative ") (display n) (display ": ")
   (display (map (lambda (e) (size (nth-derivative e n))) formulas))
   (newline))
 '(1 2 3 4 5 6 7))
