#!/bin/sh
# memcheck.sh - runs suites under valgrind.  They must pass, and none of their
# processes may have an error to report.
#
# usage: MAKE=... test/scripts/memcheck.sh SUITE...    (where the library was built)
#
# Reports are left in memcheck.logs/PID.  The last line is the sum: the tests of
# the suites, and one failure for each process with a report.
set -u
logs=memcheck.logs
output=$logs/output

command -v valgrind >/dev/null 2>&1 || {
	echo "memcheck: there is no valgrind" >&2
	exit 1
}
rm -rf "$logs"
mkdir "$logs" || exit 1
CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER-40}
export CK_TIMEOUT_MULTIPLIER
status=0
"${MAKE:-make}" check check_PROGRAMS="$*" TESTS="$*" LOG_COMPILER="valgrind -q \
 --error-exitcode=99 --log-file=$logs/%p" >"$output" 2>&1 || status=1
grep -Ev '^(PASS: |# |[0-9]+ passed, )' "$output"
# A process without an error leaves an empty file.
find "$logs" -type f -empty -exec rm -f {} +
reports=0
for log in "$logs"/[0-9]*; do
	[ -e "$log" ] || continue
	reports=$((reports + 1))
	echo "memcheck: $log"
	cat "$log"
done
awk -v reports=$reports -v status=$status '
/^[0-9]+ passed, [0-9]+ failed$/ { passed = $1; failed = $3 }
END {
	failed += reports
	if (failed == 0 && (status != 0 || passed + 0 == 0))
		failed = 1
	print passed + 0 " passed, " failed + 0 " failed"
	exit failed != 0
}' "$output"
