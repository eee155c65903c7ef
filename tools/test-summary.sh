#!/bin/sh
# test-summary.sh - the sum over the logs of a test run.
#
# A suite of Check ends with "NN%: Checks: N, Failures: F, Errors: E", any
# other program with "name: N passed, M failed".  A suite that automake's .trs
# file calls failed and that reported no failure itself (it crashed, or never
# said a number) counts as one failure.  Prints what failed, then one line
# "N passed, M failed".
#
# usage: test-summary.sh LOG...
LC_ALL=C
export LC_ALL
for log; do
	trs=${log%.log}.trs
	echo "suite ${log%.log}"
	[ -f "$log" ] && [ -f "$trs" ] && sed -n 's/^:test-result: /result /p' "$trs"
	[ -f "$log" ] && sed 's/^/log /' "$log"
done | awk '
# One suite has been read.
function close_suite() {
	if (suite == "" || result == "SKIP")
		return
	if (result == "")
		complaint = "did not run"
	else if (!reported)
		complaint = "reported no result (" result ")"
	else if (result != "PASS" && !bad)
		complaint = "ended badly (" result ")"
	else
		complaint = ""
	if (complaint != "") {
		print suite ": " complaint
		bad++
	}
	passed += good
	failed += bad
}
$1 == "suite" {
	close_suite()
	suite = $2
	result = ""
	reported = good = bad = 0
	next
}
$1 == "result" { result = $2; next }
{ sub(/^log /, "") }
/^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+$/ {
	gsub(/[^0-9 ]/, "")
	good += $2 - $3 - $4
	bad += $3 + $4
	reported = 1
	next
}
/^[a-z0-9_]+: [0-9]+ passed, [0-9]+ failed( |$)/ {
	good += $2
	bad += $4
	reported = 1
	next
}
# A test of Check that failed: file:line:F:case:test:iteration: why
/:[0-9]+:[FE]:.*:.*:[0-9]+: / { print suite ": " $0 }
END {
	close_suite()
	printf "%d passed, %d failed\n", passed, failed
	exit failed > 0
}'
