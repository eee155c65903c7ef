#!/bin/sh
# tagged.sh - prints the tests of test/list.am that have a tag, in one line.
#
# usage: srcdir=DIR tools/tagged.sh TAG
#
# Fails if no test has the tag.
set -eu
awk -v tag="$1" '
/^[a-z_]+ \+= / {
	for (i = 5; i <= NF; i++)
		if ($i == tag) {
			printf "%s%s", found++ ? " " : "", $3
			break
		}
}
END {
	if (!found)
		exit 1
	print ""
}' "${srcdir:-.}/test/list.am" || {
	echo "tagged: no test has the tag $1" >&2
	exit 1
}
