#!/bin/sh
# mruby_port.sh - each check that examples/ports/mruby/port_mruby.sh makes of a
# run can fail, and README.md there counts the changed lines right.
#
# mruby itself is not needed: the logs and the notes are made up.
#
# usage: srcdir=DIR test/scripts/mruby_port.sh
set -u
srcdir=$(cd "${srcdir:-.}" && pwd)
port=$srcdir/examples/ports/mruby
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
# shellcheck source=examples/ports/mruby/compare.sh
. "$port/compare.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

# holds WHAT COMMAND... and fails WHAT COMMAND...: the command succeeds, or
# fails.
holds() {
	what=$1
	shift
	"$@" >said
	verdict $? "$what"
}

fails() {
	what=$1
	shift
	! "$@" >said
	verdict $? "$what"
}

# ---- logs ----

# log END1 END2 STATUS TREE prints a log.  END1 and END2 say how two tests end,
# STATUS is the status of the second program, and TREE is the folder of mruby.
log() {
	cat <<-END
		>>> Test host <<<
		mrbtest - Embeddable Ruby Test

		Array#pack : $1
		Integer#chr : .
		outer : inner : .
		.
		String#dump : $2

		Fail: a test at 0x7f01, $4/test/t/string.rb (core)
		  Total: 5
		     OK: 4
		     KO: 1
		  Crash: 0
		Warning: 0
		   Skip: 0
		   Time: 0.$3 seconds

		test:run:lib: status 0
		>>> Bintest host <<<
		no files : .

		  Total: 1
		     OK: 1
		     KO: 0
		  Crash: 0
		Warning: 0
		   Skip: 0
		   Time: 1.$3 seconds
		test:run:bin: status $3
	END
}

log F . 0 /stock >stock.log
holds "a log with all tests is whole" is_whole stock.log
for line in 'Array#pack' '  Total: 1' '   *OK: 1' 'test:run:bin'; do
	sed "/^$line/d" stock.log >part.log
	fails "a log without the line $line is not whole" is_whole part.log
done
: >empty.log
fails "an empty log is not whole" is_whole empty.log

# same WHAT: each test ended in the same way in both logs.  differs WHAT LINE:
# they do not, and this line of the difference says so.
same() {
	holds "$1" alike_logs port.log /port stock.log /stock
}

differs() {
	fails "$1" alike_logs port.log /port stock.log /stock
	grep -qxF -e "$2" said
	verdict $? "$1: the line $2 is shown"
}

log F . 0 /port | sed -e 's/Time: 0/Time: 7/' -e 's/0x7f01/0x55aa/' >port.log
same "times, addresses and folders do not matter"
log . F 0 /port >port.log
differs "another test fails, and the sums are the same" "> String#dump : F"
log . . 0 /port >port.log
differs "a test passes that fails in mruby itself" "> Array#pack : ."
log F . 0 /port | sed 's/^String#dump/String#undump/' >port.log
differs "a test has another name" "> String#undump : ."
log F . 1 /port >port.log
differs "a program exits with another status" "> test:run:bin: status 1"
log F . 0 /port >port.log
echo "Command failed with status (): [build/host/bin/mrbtest -v]" >>port.log
differs "a program ends by a signal" \
	"> Command failed with status (): [build/host/bin/mrbtest -v]"
log F . 0 /port | sed '/Bintest/,$d' >port.log
differs "the second program did not run" "< no files : ."

# ---- notes ----

# note COLLECTIONS ASKED VERIFIED HELPED OVERWRITTEN prints the line of a
# process with 1000 allocations and 2 states.
note() {
	echo "collections $1 allocations 1000 asked $2 states 2 verified $3" \
		"helped $4 overwritten $5"
}

{ note 10 20 2 5 1 && note 11 22 3 0 1; } >notes
holds "each state was verified" verified notes
holds "one allocation in 100 collected" collected notes 100
holds "memory was overwritten" overwritten notes
holds "references were asked for twice" asked notes 2
holds "the second marker has marked" some notes helped
fails "references were asked for once" asked notes 1
fails "one allocation in 50 collected" collected notes 50
{ note 10 20 2 0 1 && note 9 18 1 0 0; } >notes
fails "the second process did not verify each state" verified notes
fails "the second process did not collect as often" collected notes 100
fails "the second process did not overwrite" overwritten notes
fails "the second marker has marked nothing" some notes helped
{ note 10 20 2 0 1 && note 10 10 1 0 0; } >notes
fails "the second process was asked once" asked notes 2
{ note 10 20 2 0 1 && echo "collections 10 allocations 1000"; } >notes
fails "the line of the second process was cut" asked notes 2
{ note 10 10 2 0 1 && note 0 0 0 0 1 | sed s/states.2/states\ 0/; } >notes
holds "a process ends no state" verified notes
holds "a process does not collect" asked notes 1
note 0 0 2 0 1 >notes
fails "nothing was collected, so nothing was asked for" asked notes 2
fails "nothing was collected" collected notes 10000
: >notes
for condition in 'verified notes' 'collected notes 100' \
	'overwritten notes' 'asked notes 2'; do
	# shellcheck disable=SC2086 # a function and its arguments
	fails "no notes: $condition" $condition
done
note 1 1 1 1 1 >one
{ note 1 1 1 1 1 && note 1 1 1 1 1; } >two
holds "as many processes" as_many two two
fails "a process has left no notes" as_many two one

# ---- tracecheck ----

line='rtheap: tracecheck: object at 0x7e22'
old="$line \"String\", offset 40: untold reference to RT_NOSCAN at 0x7"
echo "$old" >errors
holds "the old words of a string" told errors
for other in "$line \"Hash\", offset 24: untold reference to RT_NOSCAN at 0x7" \
	"rtheap: tracecheck: 3 others"; do
	{ echo "$old" && echo "$other"; } >errors
	fails "tracecheck says $other" told errors
	echo "$other" | cmp -s - said
	verdict $? "it is shown: $other"
done
echo "build/host/bin/mrbtest -v" >errors
fails "tracecheck has not looked" told errors

# ---- changed lines ----

# shellcheck disable=SC2046 # three numbers
set -- $(patched "$port/mruby.patch")
holds "README.md counts the lines" \
	has_sizes "$port/README.md" "$@" "$port/rtheap.h"
fails "one line more" has_sizes "$port/README.md" $(($1 + 1)) "$2" "$3" \
	"$port/rtheap.h"
{ cat "$port/rtheap.h" && echo "int more;"; } >rtheap.h
fails "one line of code more" has_sizes "$port/README.md" "$@" rtheap.h
[ $(($1 + $2)) -le 60 ]
verdict $? "at most 60 lines of mruby change"
grep -q "^Elsewhere $(($1 + $2)) lines change" "$srcdir/README.md"
verdict $? "the README of the library counts the same"
mkdir -p a/build a/src b/src b/include
printf '%s\n' one two three >a/src/x.c
printf '%s\n' one 2 three four >b/src/x.c
echo collector >a/src/gc.c
echo header | tee b/include/rtheap.h >b/src/gc.c
echo object >a/build/x.o
[ "$(changes a b)" = "2 1 1" ]
verdict $? "of two trees the changed lines are counted"
echo new >b/src/y.c
[ "$(changes a b)" = "3 1 2" ]
verdict $? "a file that only one tree has is counted"

verdict_sum
