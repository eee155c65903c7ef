#!/bin/sh
# run.sh - do the tests notice faults?  Seeds those of the list, one at a time.
#
# usage: srcdir=DIR test/mutants/run.sh [NAMES]
#
# Works on a copy of the sources.  Without a fault all suites must pass first.
# A fault is noticed ("killed") when its own suites fail, or do not end in time;
# if they all pass, the whole of `make check` gets its turn.  NAMES is a regular
# expression of names.  Prints a line a fault, the survivors, and a sum; fails
# when fewer than 95 in 100 were noticed, or one could not be seeded or built.
set -eu
LC_ALL=C
export LC_ALL
srcdir=$(cd "${srcdir:-.}" && pwd)
wanted=${1:-.}
list=$srcdir/test/mutants/list
limit=${RT_MUTANT_SECONDS:-120} # a suite may take
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tab=$(printf '\t')

# A build of its own, from the sources as they are.
mkdir "$work/source" "$work/build"
(cd "$srcdir" && tar -cf - --exclude=.git --exclude='*.o' --exclude='*.lo' \
	--exclude=.libs --exclude='*.la' --exclude='*.a' .) |
	tar -xf - -C "$work/source"
if [ -f "$work/source/config.status" ]; then
	make -C "$work/source" distclean >"$work/log" 2>&1
fi
(cd "$work/build" && "$work/source/configure" --disable-shared CFLAGS='-O1 -g' \
	>"$work/log" 2>&1) || { tail "$work/log" >&2 && exit 2; }

# seed FILE SCRIPT: one line is other than it was.
seed() {
	[ -f "$work/source/$1" ] || return 1
	cp "$work/source/$1" "$work/original"
	sed "$2" "$work/original" >"$work/source/$1"
	[ "$(diff "$work/original" "$work/source/$1" | grep -c '^[<>]')" = 2 ]
}

build() {
	# shellcheck disable=SC2086 # a list
	make -C "$work/build" -j2 $1 >"$work/log" 2>&1
}

all_pass() {
	RT_SKIP_MODELS=1 timeout -k 5 900 make -C "$work/build" -j2 check \
		>"$work/log" 2>&1
}

# programs SUITES
programs() {
	for suite in $1; do printf 'test/%s ' "$suite"; done
}

# noticed SUITES: prints by what.
noticed() {
	for suite in $1; do
		status=0
		(cd "$work/build" && timeout -k 5 "$limit" "test/$suite") \
			>"$work/log" 2>&1 || status=$?
		case $status in
		0) ;;
		124 | 137) echo "$suite, which does not end" && return ;;
		*) echo "$suite" && return ;;
		esac
	done
	all_pass || echo "make check"
}

if ! all_pass; then
	echo "mutants: make check fails without any fault" >&2
	tail "$work/log" >&2
	exit 2
fi

killed=0
total=0
broken=0
survivors=
while IFS=$tab read -r name file script suites; do
	case $name in '' | '#'*) continue ;; esac
	printf '%s\n' "$name" | grep -Eq -e "$wanted" || continue
	if ! seed "$file" "$script" || ! build "$(programs "$suites")"; then
		cp "$srcdir/$file" "$work/source/$file" || true
		printf '%-20s %s\n' "$name" "NOT SEEDED: see $file"
		broken=$((broken + 1))
		continue
	fi
	total=$((total + 1))
	by=$(noticed "$suites" </dev/null)
	cp "$work/original" "$work/source/$file"
	if [ -n "$by" ]; then
		killed=$((killed + 1))
		printf '%-20s killed by %s\n' "$name" "$by"
	else
		survivors="$survivors $name"
		printf '%-20s SURVIVED\n' "$name"
	fi
done <"$list"

echo "survivors:${survivors:- none}"
echo "$killed of $total killed, $broken not seeded"
[ $broken = 0 ] && [ $((killed * 100)) -ge $((total * 95)) ]
