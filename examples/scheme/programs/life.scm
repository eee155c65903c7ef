; life.scm - Conway's game of life: a glider gun fires to the lower right.

(define width 60)
(define height 26)

(define (make-board) (make-vector (* width height) 0))

(define gun
  '("........................O..........."
    "......................O.O..........."
    "............OO......OO............OO"
    "...........O...O....OO............OO"
    "OO........O.....O...OO.............."
    "OO........O...O.OO....O.O..........."
    "..........O.....O.......O..........."
    "...........O...O...................."
    "............OO......................"))

(define (put! board lines x y)
  (do ((l lines (cdr l)) (y y (+ y 1))) ((null? l) board)
    (do ((i 0 (+ i 1))) ((= i (string-length (car l))))
      (when (char=? (string-ref (car l) i) #\O)
        (vector-set! board (+ (* y width) x i) 1)))))

; The edges stay dead, so no cell in the sum is outside.
(define (next board)
  (let ((new (make-board)))
    (do ((y 1 (+ y 1))) ((= y (- height 1)) new)
      (do ((x 1 (+ x 1))) ((= x (- width 1)))
        (let* ((i (+ (* y width) x))
               (up (- i width))
               (down (+ i width))
               (n (+ (vector-ref board (- up 1)) (vector-ref board up)
                     (vector-ref board (+ up 1)) (vector-ref board (- i 1))
                     (vector-ref board (+ i 1)) (vector-ref board (- down 1))
                     (vector-ref board down) (vector-ref board (+ down 1)))))
          (vector-set! new i
                       (if (or (= n 3) (and (= n 2) (= 1 (vector-ref board i)))) 1 0)))))))

(define (population board)
  (do ((i 0 (+ i 1)) (n 0 (+ n (vector-ref board i)))) ((= i (* width height)) n)))

(define (show board)
  (do ((y 0 (+ y 1))) ((= y height))
    (do ((x 0 (+ x 1))) ((= x width))
      (display (if (= 1 (vector-ref board (+ (* y width) x))) "o" " ")))
    (newline)))

(define (run board generations)
  (if (= generations 0) board (run (next board) (- generations 1))))

(define start (put! (make-board) gun 2 2))
(define end (run start 1000))
(display "generation 0: ") (display (population start)) (display " cells") (newline)
(display "generation 1000: ") (display (population end)) (display " cells") (newline)
(show end)
