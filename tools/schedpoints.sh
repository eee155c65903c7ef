#!/bin/sh
# schedpoints.sh - models, schedule points and their tests refer to each other.
#
# Above every action of a model (inline, proctype) are lines that a program can
# read:
#
#   // C: function, function      what it models; "none": the processor, or what
#                                 is checked
#   // at: POINT, POINT           where threads come between its steps in C
#   // in: action                 or the action that it is a part of
#
# The rules are:
# - Every action names functions that exist, and points that exist, or another
#   action that has points.
# - Every point is in the function that its name names, and some test holds a
#   thread there.  The last test of test/order/check_sched shows that a thread reaches
#   it.
# - The test that would find the fault of a mutant in the C code names the
#   mutant.  Otherwise the head of test/order/check_sched.c names it, with the reason
#   why no order of steps would find it.
#
# usage: srcdir=DIR tools/schedpoints.sh
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
passed=0
failed=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$srcdir" || exit 99

# rule NAME reports that the rule holds if nothing was found.
rule() {
	if [ -s "$dir/found" ]; then
		failed=$((failed + 1))
		echo "schedpoints: broken: $1"
		sed 's/^/  /' "$dir/found"
	else
		passed=$((passed + 1))
	fi
}

# Every list has one name on a line, and is sorted.
points() {
	sed -n 's/^[ \t]*X(\([A-Z_]*\)).*/\1/p' runtime/os/schedpoint.h
}

sources=$(find runtime gc -name '*.[ch]')

# places prints "point function file" for each place in the sources.
places() {
	# shellcheck disable=SC2086 # a list of files
	awk '/^[A-Za-z_].*\(/ && !/;$/ {
		name = $0
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
	}
	/schedpoint\(SCHED_/ {
		point = $0
		sub(/.*schedpoint\(SCHED_/, "", point)
		sub(/\).*/, "", point)
		print point, name, FILENAME
	}' $sources
}

# functions finds definitions at the beginning of a line.
functions() {
	# shellcheck disable=SC2086 # a list of files
	awk '/^[A-Za-z_].*\(/ && !/;$/ && !/^#/ {
		name = $0
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
		print name
	}' $sources
}

# actions prints "model action key value", one value on a line; key is C, at or
# in.
actions() {
	awk '
	FNR == 1 { file = FILENAME; gsub(/.*\/|\.pml/, "", file) }
	/^\/\/ (C|at|in): / {
		key = substr($2, 1, length($2) - 1)
		n = split(substr($0, index($0, ": ") + 2), value, /, */)
		for (i = 1; i <= n; i++)
			line[++lines] = key " " value[i]
		next
	}
	/^(inline|proctype) / {
		sub(/\(.*/, "", $2)
		print file, $2, "action"
		for (i = 1; i <= lines; i++)
			print file, $2, line[i]
	}
	!/^\/\// { lines = 0 }' test/models/*.pml
}

mutants() {
	awk 'FNR == 1 { file = FILENAME; gsub(/.*\/|\.pml/, "", file) }
		/^\/\/ mutant / { print file, substr($3, 1, length($3) - 1) }' \
		test/models/*.pml
}

# named prints "model mutant" for each mutant that a comment of the tests names.
named() {
	awk -v models="$(cd test/models && ls ./*.pml)" '
	BEGIN {
		n = split(models, list, "\n")
		for (i = 1; i <= n; i++) {
			gsub(/.*\/|\.pml/, "", list[i])
			is_model[list[i]] = 1
		}
	}
	# A list that continues in the next line ends in a comma.
	!/^[ \t]*\/\// { model = ""; next }
	{
		for (i = 2; i <= NF; i++) {
			if ($i in is_model)
				model = $i
			else if (model && $i ~ /^[A-Z_]+[,;:.]?$/) {
				name = $i
				sub(/[,;:.]$/, "", name)
				print model, name
				if ($i !~ /,$/)
					model = ""
			} else
				model = ""
		}
	}' test/order/check_sched.c test/order/sched_*.c
}

points | sort >"$dir/points"
places | sort >"$dir/places"
functions | sort -u >"$dir/functions"
actions >"$dir/actions"
mutants | sort >"$dir/mutants"
named | sort -u >"$dir/named"

awk 'FNR == NR { known[$1] = 1; next }
	!($1 in known) { print $3 ": unknown " $1; next }
	{ seen[$1]++ }
	index(tolower($1), $2) == 0 { print $3 ": " $1 " is in " $2 }
	END {
		for (point in known)
			if (!seen[point])
				print point " is nowhere"
	}' "$dir/points" "$dir/places" >"$dir/found"
rule "a point is in the function that it names"

while read -r point; do
	grep -Ewq "SCHED_$point" test/order/sched_*.c ||
		echo "$point: no test holds a thread there"
done <"$dir/points" >"$dir/found"
rule "every point has a test"

awk -v points="$dir/points" -v functions="$dir/functions" '
	BEGIN {
		while ((getline line <points) > 0)
			is_point[line] = 1
		while ((getline line <functions) > 0)
			is_function[line] = 1
	}
	{ me = $1 " " $2 }
	$3 == "action" { order[++n] = me; next }
	$3 == "C" {
		what[me] = what[me] " " $4
		if ($4 != "none" && !($4 in is_function))
			print me ": there is no function " $4
	}
	$3 == "at" {
		at[me]++
		if (!($4 in is_point))
			print me ": there is no point " $4
	}
	$3 == "in" { within[me] = $1 " " $4 }
	END {
		for (i = 1; i <= n; i++) {
			me = order[i]
			if (!what[me])
				print me ": names no C function"
			else if (what[me] != " none" && !at[me] &&
			    !at[within[me]])
				print me ": has no point"
		}
		if (n == 0)
			print "no model has an action"
	}' "$dir/actions" >"$dir/found"
rule "every action names its functions and points"

comm -23 "$dir/mutants" "$dir/named" >"$dir/found"
rule "every mutant of a model is a matter of some test"

comm -13 "$dir/mutants" "$dir/named" >"$dir/found"
rule "tests name mutants that exist"

echo "schedpoints: $passed passed, $failed failed"
[ $failed = 0 ]
