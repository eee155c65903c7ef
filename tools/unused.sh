#!/bin/sh
# unused.sh - every function that is not static is public, or product code uses
# it.
#
# A use is a word in the body of a function or in a macro: in runtime/, gc/ or a
# public header, without comments and without what only the library of tests
# has (RT_TEST).  An object that needs the symbol of another one uses it, too.
# Inline functions of private headers are functions as all others.
#
# The functions below are exempt.  Each line says which capability needs the
# function.  A function that is used, or does not exist, must not be among them.
# What only tests need is in the library of tests.
#
# The same run looks at three functions that nothing uses, two of them inline,
# in a copy: it must find them.
#
# usage: srcdir=DIR CC=... NM=... tools/unused.sh (where the objects were built)
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

exempt="
runway_init marking beside the threads: the pacer's assists and credit
runway_trigger marking beside the threads: the pacer's assists and credit
runway_begin marking beside the threads: the pacer's assists and credit
runway_owe marking beside the threads: the pacer's assists and credit
runway_end marking beside the threads: the pacer's assists and credit
runway_work marking beside the threads: the pacer's assists and credit
"

# code FILE...: the text without comments and without what tests alone have.
code() {
	awk '
	FNR == 1 { depth = skip = 0 }
	/^#[ \t]*if/ {
		depth++
		if (!skip && $0 ~ /RT_TEST/)
			skip = depth
	}
	/^#[ \t]*else/ && skip == depth { skip = 0; next }
	/^#[ \t]*endif/ {
		if (skip == depth)
			skip = 0
		depth--
	}
	skip { next }
	{
		sub(/\/\/.*/, "")
		gsub(/\/\*[^*]*\*\//, "")
		print
	}' "$@"
}

# defined DIR OBJECT...: "function where" of what the objects define and of the
# inline functions of private headers.
defined() {
	sources=$1
	shift
	# shellcheck disable=SC2086 # NM may carry options
	${NM:-nm} -P "$@" | awk '$2 == "T" { print $1, "is not static" }'
	code "$sources"/runtime/*/*.h "$sources"/gc/*/*.h |
		awk '/^(RT_INLINE|static inline) / && match($0, /[a-z0-9_]+\(/) {
			print substr($0, RSTART, RLENGTH - 1), "is inline"
		}'
}

# used DIR OBJECT...: all words of bodies and macros, and needed symbols.  What
# begins a line declares or defines.
used() {
	sources=$1
	shift
	# shellcheck disable=SC2086 # NM may carry options
	${NM:-nm} -P "$@" | awk '$2 == "U" { print $1 }'
	code "$sources"/runtime/*/*.[ch] "$sources"/gc/*/*.[ch] \
		"$sources"/include/rt/*.h | grep -E '^([ 	]|#)' |
		grep -oE '[A-Za-z_][A-Za-z0-9_]*'
}

# unused DIR OBJECT...: what is defined and not used, nor public.
unused() {
	used "$@" | sort -u >"$dir/used"
	sort "$srcdir/gc/api/symbols.list" >>"$dir/used"
	defined "$@" | sort -u | awk -v known="$dir/used" '
		BEGIN {
			while ((getline word <known) > 0)
				used[word]
		}
		!($1 in used)'
}

# Of the library, which ships.
objects=$(for source in $(cd "$srcdir" && ls runtime/*/*.c gc/*/*.c); do
	echo "${source%.c}.o"
done)
printf '%s\n' "$exempt" | awk 'NF { print $1 }' | sort >"$dir/exempt"

# shellcheck disable=SC2086 # a list of objects
unused "$srcdir" $objects | sort >"$dir/unused"
! grep -vwFf "$dir/exempt" "$dir/unused"
verdict $? "product code uses each function, or it is public or exempt"
awk '{ print $1 }' "$dir/unused" | comm -13 - "$dir/exempt" >"$dir/stale"
! sed 's/$/ is exempt, but used or gone/' "$dir/stale" | grep .
verdict $? "what is exempt exists, and nothing uses it"
! printf '%s\n' "$exempt" | awk 'NF == 1' | grep .
verdict $? "each exemption has its reason"

mkdir "$dir/copy"
(cd "$srcdir" && tar -cf - runtime/*/*.[ch] gc/*/*.[ch] include/rt/*.h) |
	tar -xf - -C "$dir/copy"
cat >"$dir/copy/runtime/os/seeded.h" <<'SEEDED'
int seeded_out_of_line(void);
RT_INLINE int seeded_inline(void)
{
	return 1;
}
__attribute__((unused))
static inline int seeded_static(void)
{
	return 1;
}
SEEDED
cat >"$dir/copy/runtime/os/seeded.c" <<'SEEDED'
#define RT_INLINE static inline
#include "seeded.h"
static int called(void); // seeded_out_of_line()
#ifdef RT_TEST
int tests(void)
{
	return seeded_out_of_line() + seeded_inline();
}
#endif
int seeded_out_of_line(void)
{
	return called();
}
static int called(void)
{
	return 2;
}
SEEDED
# shellcheck disable=SC2086 # CC may carry options; a list of objects
${CC:-cc} -c "$dir/copy/runtime/os/seeded.c" -o "$dir/seeded.o" &&
	unused "$dir/copy" $objects "$dir/seeded.o" | sort |
	comm -13 "$dir/unused" - >"$dir/found" &&
	[ "$(cut -d' ' -f1 "$dir/found" | paste -sd ' ' -)" = \
		"seeded_inline seeded_out_of_line seeded_static" ]
verdict $? "functions that nothing uses are found"
verdict_sum
