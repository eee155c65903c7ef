#!/bin/sh
# unused.sh - every function that is not static is public, or product code uses
# it.
#
# A function is used if another object needs its symbol.  It is also used if its
# name is a word in the body of another function or in a macro of its own file.
# In another file a parenthesis must follow the word: a call in RT_CHECK leaves
# no symbol.  For an inline function of a private header, any such word in
# runtime/, gc/ or a public header counts.  Comments do not count, nor does code
# that only the library of tests has (RT_TEST).
#
# The functions below are exempt.  Each line says which capability needs the
# function.  A function that is used, or does not exist, must not be among them.
# Functions that only tests need are in the library of tests.
#
# The same run looks at five functions that nothing uses, two of them inline, in
# a copy: it must find them.
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
	FNR == 1 { depth = skip = within = 0 }
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
	within { # a comment of several lines
		if (!sub(/.*\*\//, ""))
			next
		within = 0
	}
	{
		sub(/\/\/.*/, "")
		gsub(/\/\*[^*]*\*\//, "")
		within = sub(/\/\*.*/, "")
		print
	}' "$@"
}

# file_of is awk: the place of a source or object in the tree, without its
# ending.
file_of='
	function file_of(path) {
		sub(/[.][a-z]+:?$/, "", path)
		match(path, /(runtime|gc|include)\/[a-z]+\/[^\/]+$/)
		return substr(path, RSTART)
	}'

# defined DIR OBJECT...: "function what file" of what the objects define, and
# "function what" of the inline functions of private headers.
defined() {
	sources=$1
	shift
	# shellcheck disable=SC2086 # NM may carry options
	${NM:-nm} -P -A "$@" | awk "$file_of"'
		$3 == "T" { print $2, "is_not_static", file_of($1) }'
	code "$sources"/runtime/*/*.h "$sources"/gc/*/*.h |
		awk '/^(RT_INLINE|static inline) / && match($0, /[a-z0-9_]+\(/) {
			print substr($0, RSTART, RLENGTH - 1), "is_inline"
		}'
}

# words DIR: "word file" of all words of bodies and macros, and "word call" of
# those before a parenthesis, without the name of the function whose body it is.
# A word that begins a line declares or defines.
words() {
	for source in "$1"/runtime/*/*.[ch] "$1"/gc/*/*.[ch] "$1"/include/rt/*.h; do
		code "$source" | awk -v path="$source" "$file_of"'
		/^[A-Za-z_].*\(/ {
			name = $0
			sub(/\(.*/, "", name)
			sub(/.*[ *]/, "", name)
		}
		/^}/ || /^#[ \t]*define/ { name = "" }
		/^[ \t#]/ {
			n = split($0, word, /[^A-Za-z0-9_]+/)
			for (i = 1; i <= n; i++)
				if (word[i] ~ /^[A-Za-z_]/ && word[i] != name)
					print word[i], file_of(path)
			while (match($0, /[A-Za-z_][A-Za-z0-9_]*\(/)) {
				call = substr($0, RSTART, RLENGTH - 1)
				if (call != name)
					print call, "call"
				$0 = substr($0, RSTART + RLENGTH)
			}
		}'
	done
}

# unused DIR OBJECT...: what is defined and not used, nor public.
unused() {
	words "$1" | sort -u >"$dir/words"
	defined "$@" | sort -u >"$dir/defined"
	shift
	# shellcheck disable=SC2086 # NM may carry options
	${NM:-nm} -P "$@" | awk '$2 == "U" { print $1 }' |
		sort -u - "$srcdir/gc/api/symbols.list" >"$dir/needed"
	awk -v words="$dir/words" -v needed="$dir/needed" '
		BEGIN {
			while ((getline line <needed) > 0)
				used[line]
			while ((getline line <words) > 0) {
				split(line, part, " ")
				seen[line]
				anywhere[part[1]]
			}
		}
		$1 in used { next }
		$2 == "is_inline" ? !($1 in anywhere) : \
			!(($1 " " $3) in seen || ($1 " call") in seen)' "$dir/defined"
}

# The objects of the library, which ships.
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
int seeded_alone(int n);
int offset(void); // a word elsewhere
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
int seeded_alone(int n)
{
	return n > 0 ? seeded_alone(n - 1) : 0;
}
int offset(void)
{
	return 3;
}
static int called(void)
{
	return 2;
}
SEEDED
# shellcheck disable=SC2086 # CC may carry options; a list of objects
${CC:-cc} -c "$dir/copy/runtime/os/seeded.c" -o "$dir/copy/runtime/os/seeded.o" &&
	unused "$dir/copy" $objects "$dir/copy/runtime/os/seeded.o" | sort |
	comm -13 "$dir/unused" - >"$dir/found" &&
	[ "$(cut -d' ' -f1 "$dir/found" | paste -sd ' ' -)" = \
		"offset seeded_alone seeded_inline seeded_out_of_line seeded_static" ]
verdict $? "functions that nothing uses are found"
verdict_sum
