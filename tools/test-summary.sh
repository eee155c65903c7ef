#!/bin/sh
# test-summary.sh - the sum over the logs of a test run.
#
# A suite of Check ends with "NN%: Checks: N, Failures: F, Errors: E", any other
# program with "name: N passed, M failed".  A suite counts as one failure if
# automake's .trs file calls it failed and it reported no failure itself: it
# crashed, or ended without its numbers.
#
# A line "skipped: N of WHAT: WHY" says that N checks did not run; "; install
# PACKAGE" may follow.  Check counts a test that prints one as passed; this
# script does not.  A suite that automake calls skipped must also print such a
# line.
#
# The script prints what failed.  If anything was skipped, it prints a line
# "skipped: N checks: ..." that names it all.  The last line is "N passed, M
# failed".
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
# close_suite adds up the suite that has just been read.
function close_suite() {
	if (suite == "")
		return
	complaint = ""
	if (result == "SKIP") {
		if (!skipped)
			complaint = "did not say what it skipped"
	} else if (result == "")
		complaint = "did not run"
	else if (!reported)
		complaint = "reported no result (" result ")"
	else if (result != "PASS" && !bad)
		complaint = "ended badly (" result ")"
	if (complaint != "") {
		print suite ": " complaint
		bad++
	}
	passed += good - (of_check ? skipped : 0)
	failed += bad
}
# skip records one line about n checks of what.
function skip(n, what) {
	skipped += n
	if (!(what in skips))
		order[++kinds] = what
	skips[what] += n
	total += n
}
$1 == "suite" {
	close_suite()
	suite = $2
	result = ""
	reported = good = bad = skipped = of_check = 0
	next
}
$1 == "result" { result = $2; next }
{ sub(/^log /, "") }
/^skipped: [0-9]+ of / {
	n = $2
	sub(/^skipped: [0-9]+ of /, "")
	skip(n, $0)
	next
}
/^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+$/ {
	gsub(/[^0-9 ]/, "")
	good += $2 - $3 - $4
	bad += $3 + $4
	reported = of_check = 1
	next
}
/^[a-z0-9_]+: [0-9]+ passed, [0-9]+ failed( |$)/ {
	good += $2
	bad += $4
	reported = 1
	next
}
# A test of Check that failed, as file:line:F:case:test:iteration: why
/:[0-9]+:[FE]:.*:.*:[0-9]+: / { print suite ": " $0 }
END {
	close_suite()
	if (total != 0) {
		printf "skipped: %d checks:", total
		for (i = 1; i <= kinds; i++)
			printf "%s %d of %s", (i == 1 ? "" : ","),
				skips[order[i]], order[i]
		print ""
	}
	printf "%d passed, %d failed\n", passed, failed
	exit failed > 0
}'
