#!/bin/sh
# summary.sh - the closing lines of a test run say what passed, what failed and
# what was skipped.
#
# usage: srcdir=DIR test/scripts/summary.sh
set -u
srcdir=$(cd "${srcdir:-.}" && pwd)
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

# suite RESULT LINE...: writes the logs of a suite that automake calls RESULT.
suite() {
	rm -f ./*.log ./*.trs
	echo ":test-result: $1" >suite.trs
	shift
	printf '%s\n' "$@" >suite.log
}

# says STATUS WHAT LINE...: requires that the summary ends with STATUS, and with
# these lines.
says() {
	status=$1
	what=$2
	shift 2
	sh "$srcdir/tools/test-summary.sh" suite.log >out
	[ $? = "$status" ] && printf '%s\n' "$@" >wanted &&
		tail -n $# out | cmp -s - wanted
	verdict $? "$what"
}

suite PASS "100%: Checks: 7, Failures: 0, Errors: 0"
says 0 "a suite of Check" "7 passed, 0 failed"
suite FAIL "71%: Checks: 7, Failures: 1, Errors: 1"
says 1 "failures and errors" "5 passed, 2 failed"
suite PASS "skipped: 1 of big_heap: no room" \
	"100%: Checks: 7, Failures: 0, Errors: 0"
says 0 "a skipped test of Check did not pass" \
	"skipped: 1 checks: 1 of big_heap: no room" "6 passed, 0 failed"
suite PASS "skipped: 2 of C++: there is no g++; install g++" \
	"headers: 5 passed, 0 failed"
says 0 "a script that skips a part" \
	"skipped: 2 checks: 2 of C++: there is no g++; install g++" \
	"5 passed, 0 failed"
suite SKIP "skipped: 9 of models: there is no spin; install spin" \
	"skipped: 1 of words: why" "skipped: 1 of words: why"
says 0 "equal lines are added up" \
	"skipped: 11 checks: 9 of models: there is no spin; install spin, 2 of words: why" \
	"0 passed, 0 failed"
suite SKIP "nothing to say"
says 1 "a suite that does not say what it skips" \
	"suite: did not say what it skipped" "0 passed, 1 failed"
suite FAIL "killed"
says 1 "a suite that says nothing" "0 passed, 1 failed"
suite FAIL "soak: 3 passed, 0 failed"
says 1 "a suite that fails without a failure" "3 passed, 1 failed"

verdict_sum
