#!/bin/sh
# no_check.sh - stands for the suites where Check is not installed: says how
# many tests were not run.
#
# usage: srcdir=DIR test/no_check.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/verdict.sh
. "$srcdir/test/verdict.sh"

skip "$(cat "$srcdir"/test/*.c | grep -c '^START_TEST(')" "unit tests" \
	"there is no Check" check
exit 77
