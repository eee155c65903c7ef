#!/bin/sh
# run.sh - runs the benches and prints what they measure, the machine first.
#
# usage: srcdir=DIR CC=... CXX=... bench/run.sh [PROGRAM...]
#
# From the directory of the build; by default every bench/bench_* there is.
# Takes about a minute on an idle machine.
set -eu
srcdir=${srcdir:-.}

cpu() {
	name=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
	echo "${name:-$(uname -m)}"
}

echo "machine: $(cpu), $(getconf _NPROCESSORS_ONLN) CPUs," \
	"$(uname -sr), $(date -u '+%Y-%m-%d %H:%M UTC')"
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg)" \
	"(above a few tenths, times are of the load too)"

if [ $# = 0 ]; then
	for program in bench_memstats bench_alloc bench_mark bench_trees; do
		[ ! -x "bench/$program" ] || set -- "$@" "bench/$program"
	done
fi
for program in "$@"; do
	case $program in
	*/*) "$program" ;;
	*) "./$program" ;;
	esac
done

printf '\n%-38s %12s\n' "one inline allocation" instructions
if counts=$("${SHELL:-/bin/sh}" "$srcdir/bench/inline.sh"); then
	echo "$counts" | while read -r language loop count; do
		printf '%-38s %12s\n' "$language, $loop" "$count"
	done
elif [ $? -eq 77 ]; then
	echo "$counts"
else
	exit 1
fi
