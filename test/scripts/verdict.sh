# shellcheck shell=sh
# verdict.sh - what test scripts share: they count the checks that hold, and end
# with a sum.
#
# usage: . "$srcdir/test/scripts/verdict.sh"
script=$(basename "$0" .sh)
passed=0
failed=0

# verdict STATUS WHAT
verdict() {
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$script: broken: $2"
	fi
}

# verdict_sum prints the last line, and returns the script's exit status.
verdict_sum() {
	echo "$script: $passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

# skip N WHAT WHY [PACKAGE]: N checks of WHAT cannot run here.  PACKAGE is the
# Debian package that is missing.
skip() {
	echo "skipped: $1 of $2: $3${4:+; install $4}"
}
