#!/bin/sh
# test.sh [SCHEME [DIR]] - tests of the Scheme example.
#
# Without arguments it tests the interpreter of the build in the current
# directory, with the files beside this script.  It ends with "scheme: N passed,
# M failed".
set -u

scheme=${1:-./examples/scheme/scheme}
dir=${2:-$(dirname "$0")}
passed=0
failed=0

case $scheme in
/*) ;;
*) scheme=$(pwd)/$scheme ;;
esac
if ! [ -x "$scheme" ]; then
	echo "scheme: no interpreter at $scheme" >&2
	exit 1
fi
# ThreadSanitizer's own stack of calls holds 65536, and it does not check that.
deep=yes
if grep -q __tsan_init "$scheme"; then
	deep=no
	echo "ThreadSanitizer: nothing that recurses deeply"
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# expect NAME counts a test: $tmp/got must be $tmp/want, and $status $expected.
expect() {
	if cmp -s "$tmp/want" "$tmp/got" && [ "$status" -eq "$expected" ]; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "failed: $1 (status $status, expected $expected)"
	diff "$tmp/want" "$tmp/got" | head -n 20
}

# error CODE MESSAGE checks that CODE prints MESSAGE to stderr and fails.
error() {
	printf '%s' "$1" >"$tmp/t.scm"
	printf '%s\n' "$2" >"$tmp/want"
	"$scheme" "$tmp/t.scm" >/dev/null 2>"$tmp/got"
	status=$?
	expected=1
	expect "$1"
}

# stdin INPUT OUTPUT [FILE...] checks what the interpreter prints for an input;
# both go through printf.  Errors are part of the output.  $ends is its status.
ends=0
stdin() {
	# shellcheck disable=SC2059
	printf "$2" >"$tmp/want"
	input=$1
	shift 2
	# shellcheck disable=SC2059
	printf "$input" | "$scheme" "$@" >"$tmp/got" 2>&1
	status=$?
	expected=$ends
	expect "stdin $input"
}

# ---- programs, with a heap that is collected often

for out in "$dir"/programs/*.out; do
	"$scheme" --gc-percent 20 "${out%.out}.scm" >"$tmp/got" 2>&1
	status=$?
	expected=0
	cp "$out" "$tmp/want"
	expect "$(basename "$out" .out)"
done

# ---- and in the debugging modes of the heap

# mode RTDEBUG NAME
mode() {
	RTDEBUG=$1 "$scheme" "$dir/programs/$2.scm" >"$tmp/got" 2>&1
	status=$?
	expected=0
	cp "$dir/programs/$2.out" "$tmp/want"
	expect "$2 with $1"
}
# The numbers are primes, so collections come to every point of a loop.
mode gcstress=4001 life
mode checkmark=1 meta
mode clobberfree=1 meta
mode poison=1 meta
mode tracecheck=1 meta
mode gcstress=10007,checkmark=1,clobberfree=1,tracecheck=1 life

# ---- the self-checking tour of forms and primitives

tour() {
	"$scheme" "$dir/test.scm" >"$tmp/got" 2>&1
	status=$?
	last=$(tail -n 1 "$tmp/got")
	case $last in
	[0-9]*" passed, "[0-9]*" failed")
		passed=$((passed + ${last%% passed*}))
		bad=${last##*passed, }
		failed=$((failed + ${bad%% failed}))
		[ "$last" = "${last%% passed*} passed, 0 failed" ] || cat "$tmp/got"
		;;
	*)
		failed=$((failed + 1))
		echo "failed: test.scm did not finish (status $status)"
		cat "$tmp/got"
		;;
	esac
}
[ $deep = no ] || tour

# ---- and with small numbers, while each allocation collects

sed 's/\([1-9]\)00000*/\10/g' "$dir/test.scm" >"$tmp/small.scm"
"$scheme" "$tmp/small.scm" >"$tmp/want"
RTDEBUG=gcstress=1,clobberfree=1 "$scheme" "$tmp/small.scm" >"$tmp/got" 2>&1
status=$?
expected=0
expect 'test.scm while each allocation collects'

# ---- errors name file and line

error '(define x 1)

(car
  (cdr (list x)))' 't.scm:3: car: not a pair: ()'
error '(define (f x)
  (+ x
     (vector-ref #(1 2) x)))
(f 2)' 't.scm:3: vector-ref: index out of range: 2'
error '(define (f) (car 5)) ; in tail position
(f)' 't.scm:1: car: not a pair: 5'
error "(map car '(5))" 't.scm:1: car: not a pair: 5'
error "(define (f x)
  (car x))
(for-each f
  '((1) 2))" 't.scm:2: car: not a pair: 2'
error "(map (lambda (x) x)
  '(1 . 2))" 't.scm:1: map: not a pair: 2'
error '

undefined-thing' 't.scm:3: undefined variable: undefined-thing'
error '(set! nowhere 1)' 't.scm:1: undefined variable: nowhere'
error '(letrec ((a b) (b 1)) a)' 't.scm:1: undefined variable: b'
error '(1 2)' 't.scm:1: not a procedure: 1'
error '("f")' 't.scm:1: not a procedure: "f"'
error '(define (f x) x)
(f)' 't.scm:2: f: wrong number of arguments: 0'
error '((lambda (a b . c) a) 1)' 't.scm:1: wrong number of arguments: 1'
error '(cons 1)' 't.scm:1: cons: wrong number of arguments: 1'
error '(let ((x 1))
  (error "bad thing:" x (quote (a "b")) #\c))' \
	't.scm:2: bad thing: 1 (a "b") #\c'
error "(+ 1 'a)" 't.scm:1: +: not a number: a'
error "(< 1 \"x\")" 't.scm:1: <: not a number: "x"'
error '(quotient 1 0)' 't.scm:1: quotient: division by zero: 0'
error '(/ 5 0)' 't.scm:1: /: division by zero: 5'
error '(sqrt -1)' 't.scm:1: sqrt: no real root: -1'
error '(even? 1.5)' 't.scm:1: even?: not an integer: 1.5'
error '(cadr (list 1))' 't.scm:1: cadr: wrong shape: (1)'
error "(length '(1 . 2))" 't.scm:1: length: not a list: (1 . 2)'
error "(list-ref '(1 2) 2)" 't.scm:1: list-ref: list too short: (1 2)'
error '(vector-set! (vector) 0 1)' 't.scm:1: vector-set!: index out of range: 0'
error '(vector-ref (list 1) 0)' 't.scm:1: vector-ref: not a vector: (1)'
error '(make-vector -1)' 't.scm:1: make-vector: not an index: -1'
error '(string-ref "abc" 3)' 't.scm:1: string-ref: index out of range: 3'
error '(substring "abc" 2 1)' 't.scm:1: substring: index out of range: 1'
error "(string-append \"a\" 'b)" 't.scm:1: string-append: not a string: b'
error '(string-length 5)' 't.scm:1: string-length: not a string: 5'
error '(char->integer "a")' 't.scm:1: char->integer: not a character: "a"'
error '(integer->char 256)' 't.scm:1: integer->char: not a character code: 256'
error '(symbol->string "a")' 't.scm:1: symbol->string: not a symbol: "a"'
error "(assq 'a '(1))" 't.scm:1: assq: not a pair: 1'
error '(define l (list 1))
(set-cdr! l l)
(length l)' "t.scm:3: length: not a list: ($(yes 1 | head -n 99 | tr '\n' ' ')...)"
error '(if)' 't.scm:1: bad syntax: (if)'
error '(let ((x)) x)' 't.scm:1: bad syntax: (let ((x)) x)'
error '(lambda (1) 1)' 't.scm:1: lambda: not a parameter: 1'
error '(display if)' 't.scm:1: not a variable: if'
error '(lambda () (if #t (define x 1)))' \
	't.scm:1: define: neither global nor in a body: x'
error '()' 't.scm:1: empty call'
error '(car . 1)' 't.scm:1: not a call: (car . 1)'
error ')' 't.scm:1: unexpected )'
error '1
(display "x"
  (car' 't.scm:3: unexpected end of file in this list'
error '"abc' 't.scm:1: unexpected end of file in a string'
error "(1 . 2 3)" 't.scm:1: bad dotted list'
error "#(1 . 2)" 't.scm:1: unexpected dot'
error '#q' 't.scm:1: unknown syntax after #'

# ---- recursion without end, on every path that recurses in C

endless() {
	error '(define (f n)
  (+ 1 (f n)))
(f 0)' 't.scm:2: recursion too deep'
	error '(define (f n)
  (apply + (map f (list n))))
(f 0)' 't.scm:2: recursion too deep'
	error "(define (nest n l) (if (= n 0) l (nest (- n 1) (list l))))
(define a (nest 3500000 '()))
(equal? a (nest 3500000 '()))" 't.scm:3: recursion too deep'
	printf '(display (quote %s))' "$(head -c 3000000 /dev/zero | tr '\0' '(')" \
		>"$tmp/t.scm"
	echo 't.scm:1: recursion too deep' >"$tmp/want"
	"$scheme" "$tmp/t.scm" >"$tmp/got" 2>&1
	status=$?
	expected=1
	expect 'a nested datum'
	yes '(+ 1' | head -n 20000 >"$tmp/t.scm"
	yes ')' | head -n 20000 >>"$tmp/t.scm"
	echo 't.scm:10001: nested too deep' >"$tmp/want"
	"$scheme" "$tmp/t.scm" >"$tmp/got" 2>&1
	status=$?
	expect 'nested forms'
	stdin '(define (f n) (+ 1 (f n)))\n(f 1)\n(+ 1 1)\n' \
		'stdin:1: recursion too deep\n2\n'
}
[ $deep = no ] || endless

# ---- memory that is not there

# ulimit -v is not in POSIX, but in every sh of Linux.  With 300 MB the list is
# collected some dozen times before memory runs out.
# shellcheck disable=SC3045
if (ulimit -v 300000 && echo | "$scheme") >/dev/null 2>&1; then
	ulimit_v=$(ulimit -v)
	ulimit -S -v 300000
	error '(define v
  (make-vector 400000000))' 't.scm:2: out of memory'
	error '(define (grow l) (grow (cons 1 l)))
(grow (quote ()))' 't.scm:1: out of memory'
	stdin '(make-vector 400000000)\n(vector-length (make-vector 1000))\n' \
		'stdin:1: out of memory\n1000\n'
	ulimit -S -v "$ulimit_v"
fi

# ---- the prompt: values are printed, errors return to the top

stdin '(define x 5)\nx\n(* x\n   x)\n"a\\\\nb"\n' '5\n25\n"a\\\\nb"\n'
stdin '(car 1)\n(+ 1 2)\n(foo)\n)\n(quote done)\n' \
	'stdin:1: car: not a pair: 1\n3\nstdin:3: undefined variable: foo\nstdin:4: unexpected )\ndone\n'
stdin '(display "no newline") (newline) #t' 'no newline\n#t\n'
stdin '' ''
stdin '(car (quote (1 2' 'stdin:1: unexpected end of file in this list\n'

# ---- read takes data from the input, in a prompt and in a program

stdin '(define x (read)) (a "b" #(1 2.5) . c)\nx\n' '(a "b" #(1 2.5) . c)\n'
cat >"$tmp/read.scm" <<'END'
(define (sum total)
  (let ((x (read)))
    (if (eof-object? x)
        total
        (sum (+ total (if (pair? x) (apply + x) x))))))
(write (sum 0))
(newline)
END
stdin '1 2 (3 4)\n; a comment\n10' '20\n' "$tmp/read.scm"
ends=1
stdin '(1 2' 'stdin:1: unexpected end of file in this list\n' "$tmp/read.scm"

# ---- the command line

run() {
	"$scheme" "$@" >"$tmp/got" 2>&1
	status=$?
}

echo '(exit 7)' >"$tmp/seven.scm"
echo '(display 1) (exit) (display 2)' >"$tmp/exit.scm"
echo '(define x 40)' >"$tmp/one.scm"
echo '(display (+ x 2))' >"$tmp/two.scm"
usage='usage: scheme [--report] [--gc-percent N] [FILE...]'

: >"$tmp/want"
expected=7
run "$tmp/seven.scm"
expect 'exit 7'
printf 1 >"$tmp/want"
expected=0
run "$tmp/exit.scm"
expect 'exit'
printf 42 >"$tmp/want"
run --gc-percent -1 "$tmp/one.scm" "$tmp/two.scm"
expect 'two files, one heap'
echo "scheme: $tmp/none.scm: No such file or directory" >"$tmp/want"
expected=1
LC_ALL=C run "$tmp/none.scm"
expect 'no such file'
echo "$usage" >"$tmp/want"
expected=2
run --gc-percent
expect 'missing number'
run --gc-percent 1x
expect 'bad number'
run --nonsense
expect 'bad option'

# ---- the report: its sums are right

"$scheme" --report "$dir/programs/queens.scm" "$dir/programs/meta.scm" \
	>"$tmp/report" 2>&1
status=$?
expected=0
sed -n '/^checked/,$p' "$tmp/report" >"$tmp/got"
cat >"$tmp/want" <<'END'
checked
  the parts of Sys add up to Sys: yes
  objects of all sizes are all objects: yes
  allocated less freed is what is there: yes
END
expect 'the report'

echo "scheme: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
