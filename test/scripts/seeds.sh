#!/bin/sh
# seeds.sh - each fault of test/mutants/list can be seeded.  A fault that names
# code which has changed since would no longer test anything.
#
# usage: srcdir=DIR test/scripts/seeds.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

run=$srcdir/test/mutants/run.sh

# seeds DIR [NAMES] prints which faults of the tree in DIR cannot be seeded.
seeds() {
	tree=$1
	shift
	env srcdir="$tree" sh "$run" -s "$@"
}

seeds "$srcdir"
verdict $? "faults that can no longer be seeded"

# A tree in which some faults can be seeded, and some cannot.
mkdir -p "$dir/test/mutants"
printf 'int a = 1;\nint b = 1;\nint c;\n' >"$dir/code.c"
{
	echo '# a comment'
	echo
	while read -r name change; do
		printf '%s\tlogic\tcode.c\t%s\tcheck_bits\n' "$name" "$change"
	done <<'EOF'
one /int a/s/1/2/
moved /int a/d; /int c/a int d;
none /int x/s/1/2/
two s/1/2/
torn /int a/s/1/2\n3/
broken /int a/s/1
twice /int a/s/1/2/
twice /int b/s/1/2/
EOF
	printf 'absent\tlogic\tother.c\t/int a/s/1/2/\tcheck_bits\n'
} >"$dir/test/mutants/list"
seeds "$dir" '^(one|moved)$' >"$dir/found"
verdict $? "faults that can be seeded"
[ ! -s "$dir/found" ]
verdict $? "nothing is said of them"
! seeds "$dir" >"$dir/found"
verdict $? "faults that cannot be seeded"
sort "$dir/found" >"$dir/sorted"
cmp -s "$dir/sorted" - <<'EOF'
absent: NOT SEEDED: see other.c
broken: NOT SEEDED: see code.c
none: NOT SEEDED: see code.c
torn: NOT SEEDED: see code.c
twice: the name is taken
two: NOT SEEDED: see code.c
EOF
verdict $? "each of them is named"
verdict_sum
