#!/bin/sh
# doors.sh - each public function is where its header says.  gc/api/X.c defines
# what include/rt/X.h declares, and defines nothing else that is shared.  Each
# function whose comment says that it blocks or polls has a test of what it does
# in a no-GC stretch.  Each function that a host may call has a row in the table
# of misuse.
#
# usage: srcdir=DIR CC=... NM=... tools/doors.sh (where the objects were built)
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
passed=0
failed=0
declared=$(mktemp) && defined=$(mktemp) && found=$(mktemp) || exit 99
trap 'rm -f "$declared" "$defined" "$found"' EXIT

# rule NAME reports that the rule holds if nothing was found.
rule() {
	if [ -s "$found" ]; then
		failed=$((failed + 1))
		echo "doors: broken: $1"
		sed 's/^/  /' "$found"
	else
		passed=$((passed + 1))
	fi
	: >"$found"
}

# This prints "header function" for all that the headers declare with RT_API.
# After the preprocessor these are the declarations with default visibility.
# Its lines "# 12 "include/rt/X.h"" say in which header they are.
# shellcheck disable=SC2086 # CC may carry options
echo '#include <rt/rt.h>' | ${CC:-cc} -E -I"$srcdir/include" -x c - | awk '
/^#/ {
	header = ""
	if ($3 ~ /\/rt\/[a-z]+\.h"$/) {
		header = $3
		gsub(/^.*\/|\.h"$/, "", header)
	}
	next
}
header == "" { next }
{
	n = split($0, part, /[;{}]/)
	for (i = 1; i < n; i++) {
		declare(text " " part[i])
		text = ""
	}
	text = text " " part[n]
}
function declare(s) {
	if (s !~ /visibility *\( *"default" *\)/)
		return
	gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, "", s)
	if (!sub(/ *\(.*/, "", s)) # parameters; without them it is a variable
		return
	sub(/^.*[ *]/, "", s)
	print header, s
}' | sort -u >"$declared"

# This prints "source function" for all that the objects of gc/api define.
for source in "$srcdir"/gc/api/*.c; do
	name=$(basename "$source" .c)
	object=gc/api/$name.o
	[ -f "$object" ] || {
		echo "gc/api/$name.c: no object" >&2
		exit 99
	}
	# shellcheck disable=SC2086 # NM may carry options
	${NM:-nm} -P --defined-only "$object" |
		awk -v name="$name" '$2 == "T" { print name, $1 }'
done | sort -u >"$defined"

[ "$(wc -l <"$declared")" -gt 40 ] || echo "few declarations" >"$found"
rule "the headers were read"
comm -23 "$declared" "$defined" |
	sed 's,\(.*\) \(.*\),rt/\1.h declares \2; gc/api/\1.c lacks it,' >"$found"
rule "what a header declares is in its file"
# A function that only assembly calls must be visible to the linker.
comm -13 "$declared" "$defined" | grep -v '^thread thread_enter_region$' |
	sed 's,\(.*\) \(.*\),gc/api/\1.c defines \2; rt/\1.h does not know it,' \
		>"$found"
rule "what a file defines is in its header"

# This prints the functions whose comments end with the words of rt.h for one
# that blocks or polls.
cat "$srcdir"/include/rt/*.h | awk '
/^\/\*/ { waits = 0 }
/^ \* .*(Blocks|[Bb]locks and polls|it blocks)/ { waits = 1 }
/^RT_API |^static inline / {
	if (waits && match($0, /rt_[a-z_]*[a-z]\(/))
		print substr($0, RSTART, RLENGTH - 1)
	waits = 0
}' | sort -u >"$declared"
[ "$(wc -l <"$declared")" -gt 15 ] || echo "few functions" >"$found"
rule "the comments were read"
while read -r name; do
	grep -q "[^a-z_]$name(" "$srcdir/test/whole/check_nogc.c" ||
		echo "$name has no row in test/whole/check_nogc.c"
done <"$declared" >"$found"
rule "what blocks or polls is tested in a no-GC stretch"

# This prints the functions of the headers that a host may call by name.  The
# other names end with an underscore.
cat "$srcdir"/include/rt/*.h | awk '
/^RT_API |^static inline / {
	if (match($0, /rt_[a-z_]*[a-z]\(/))
		print substr($0, RSTART, RLENGTH - 1)
}' | sort -u >"$declared"
[ "$(wc -l <"$declared")" -gt 80 ] || echo "few functions" >"$found"
rule "the functions were read"
while read -r name; do
	grep -Eq "[^a-z_]$name\)?\(" "$srcdir/test/whole/check_misuse.c" \
		"$srcdir/test/whole/misuse_callbacks.c" ||
		echo "$name has no row in test/whole/check_misuse.c"
done <"$declared" >"$found"
rule "what a host may call is called wrongly by a test"

echo "doors: $passed passed, $failed failed"
[ $failed = 0 ]
