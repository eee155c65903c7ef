#!/bin/sh
# hooks.sh - what ships has no hook of tests; prints the tests that link
# test/libhooked.a, whose code has them.
#
# Hooks are the functions that a header of the library declares for tests only
# (RT_TEST), and the functions of three headers of test/harness: fault.h,
# schedpoint.h, callsite.h.  No object of the library may define or need one.
# Exactly the programs with the tag hooks in test/list.am link them.
#
# usage: srcdir=DIR NM=... tools/hooks.sh      (where the tests were built)
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# hooks DIR: the names, from the headers below DIR.
hooks() {
	(cd "$1" && awk '
	FNR == 1 { test = FILENAME ~ /^test/; depth = 0 }
	/^#if/ { depth++ }
	/^#ifdef RT_TEST/ { test = depth }
	/^#(else|endif)/ && test == depth && FILENAME !~ /^test/ { test = 0 }
	/^#endif/ { depth-- }
	test && /^[a-z].*\(/ && match($0, /[a-z0-9_]+\(/) {
		print substr($0, RSTART, RLENGTH - 1)
	}' runtime/*/*.h gc/*/*.h test/harness/fault.h \
		test/harness/schedpoint.h test/harness/callsite.h) | sort -u
}

# symbols FILE...: all names that they define or need.
symbols() {
	${NM:-nm} -P "$@" | awk 'NF > 1 { print $1 }' | sort -u
}

# in_program PROGRAM LIST: which names of the list it defines.
in_program() {
	${NM:-nm} -P "$1" | awk '$2 ~ /^[TtDdBbRr]$/ { print $1 }' | sort -u |
		comm -12 - "$2"
}

# sources PROGRAM: the files that it is made of, below the root of the sources.
sources() {
	echo "$1.c"
	sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$srcdir/test/programs.am" |
		awk -v name="$(echo "$1" | tr / _)_SOURCES" '
			$1 == name { for (i = 3; i <= NF; i++) if ($i !~ /\$/) print $i }'
}

# asks_for_hooks PROGRAM: does it name a hook or what only hooks have?
asks_for_hooks() {
	words=$(paste -sd '|' "$dir/hooks")
	sources "$1" | sort -u | (cd "$srcdir" && xargs grep -hwE \
		"$words|OSCALL_[A-Z]+|SCHED_[A-Z_]+|.*harness/(shadow|refuse).*") |
		grep . >/dev/null
}

# shipped: the objects of the library.
shipped() {
	for source in $(cd "$srcdir" && ls runtime/*/*.c gc/*/*.c); do
		echo "${source%.c}.o"
	done
}

hooks "$srcdir" >"$dir/hooks"
symbols test/libhooked.a >"$dir/hooked"
# shellcheck disable=SC2046 # a list of objects
symbols $(shipped) >"$dir/shipped"

! comm -23 "$dir/hooks" "$dir/hooked" | grep .
verdict $? "test/libhooked.a has each hook"
[ "$(grep -cxE 'fault_fail|schedpoint_pass|callsite_enter|work_limit|stw_count_from' \
	"$dir/hooks")" = 5 ]
verdict $? "hooks of each sort are found in the headers"
! comm -12 "$dir/hooks" "$dir/shipped" | grep .
verdict $? "no hook is in what ships"

export srcdir
tagged=$(sh "$srcdir/tools/tagged.sh" hooks)
points=$(sh "$srcdir/tools/tagged.sh" sched)
for program in $tagged; do
	case " $points " in
	*" $program "*) ;;
	*) asks_for_hooks "$program" ||
		echo "$program is tagged hooks and asks for none" ;;
	esac
done >"$dir/found"
! grep . "$dir/found"
verdict $? "tests that are tagged name a hook, or are run with schedule points"
sed -n 's,^[a-z_]* += \(test/[^ .]*\)\( .*\)*$,\1,p' "$srcdir/test/list.am" |
	while read -r program; do
		# Without Check, or with sanitizers, some are not built.
		[ -f "$program" ] || continue
		hooked=$(in_program "$program" "$dir/hooks")
		case " $tagged " in
		*" $program "*) ;;
		*) [ -z "$hooked" ] ||
			echo "$program has hooks and is not tagged" ;;
		esac
	done >"$dir/found"
! grep . "$dir/found"
verdict $? "tests that have hooks are tagged"

echo "link test/libhooked.a: $tagged" | sed 's,test/[a-z]*/,,g' | fmt -w 78
verdict_sum
