# shellcheck shell=sh
# example.sh - what embed.sh and install.sh know of the examples.
#
# usage: . "$srcdir/test/scripts/example.sh"

# shellcheck disable=SC2034 # for the scripts that read this one
example_names='hello shapes buffer types boxes pairs trace forgotten frames
	errors fibers abandoned stacks machine extension files two limits images fork threads monitor
	metrics'

# example_fixed NAME: prints the part of the output read that is the same in
# every run.
example_fixed() {
	case $1 in
	threads) sed '/^$/,/^checked$/d' ;;
	monitor) sed '/^#/!s/ [0-9]*$/ N/' ;;
	metrics) sed -n 's/^\(\/gc\/cycles[^ ]*\) .*/\1/p; s/^\(pause .*\): .*/\1/p; s/^\(cycle .*\): .*/\1/p' ;;
	*) cat ;;
	esac
}

# example_run NAME PROGRAM: true if it ends well and prints what it should.  Its
# output is left in PROGRAM.out.
example_run() {
	"$2" >"$2.out" &&
		example_fixed "$1" <"$2.out" |
		diff "${srcdir:?}/examples/$1.expected" -
}
