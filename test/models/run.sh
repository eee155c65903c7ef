#!/bin/sh
# run.sh - every model holds in all its states, and every mutant of it is found.
#
# Mutants are searched with RT_MODEL_MUTANTS=1, or if models are named.  They
# test the models, so not every build has to search them.
#
# A mutant is the model with one rule broken (spin -D).  It is run if the head
# of the model has a line "// mutant NAME: what is broken".  A model counts as
# passed if its search was complete and met no error.  A mutant counts as passed
# if an assertion failed or a process was stuck.  If spin is missing, all are
# skipped (77).
#
# RT_SKIP_MODELS=1 leaves the models out, for builds after one that has run
# them.
#
# usage: [srcdir=DIR] [CC=...] [RT_MODEL_MUTANTS=1] test/models/run.sh
#        [MODEL...]
set -u
srcdir=${srcdir:-${top_srcdir:-.}}
models=$srcdir/test/models
memory=1024 # MiB that one search may take; the largest needs 930

# side_by_side prints how many searches may run at once: one on each processor,
# as long as there is memory for each.
side_by_side() {
	processors=$(nproc 2>/dev/null || echo 1)
	fit=$(awk -v each=$memory '/^MemAvailable:/ {
		print int($2 / 1024 / each) }' /proc/meminfo 2>/dev/null)
	[ "${fit:-1}" -ge 1 ] || fit=1
	[ "${fit:-1}" -lt "$processors" ] || fit=$processors
	echo "${fit:-1}"
}

# search MODEL [MUTANT] prints "verdict MODEL MUTANT STATES".  It works in the
# current directory.
search() {
	model=$1
	mutant=${2-}
	options='-O1 -DCOLLAPSE' # half the memory, for a third more time
	if [ -n "$mutant" ]; then
		# Most mutants are found before an optimised search would be
		# compiled.
		options='-O0 -DREVERSE'
	fi
	{
		[ -z "$mutant" ] || echo "#define $mutant"
		cat "$model.pml"
	} >pan.pml
	# shellcheck disable=SC2086 # lists of options
	if spin -a pan.pml >log 2>&1 && [ -f pan.c ] &&
		${CC:-cc} $options -w -DSAFETY -DMEMLIM=$memory \
			-o pan pan.c >>log 2>&1; then
		./pan -m100000 -w22 >>log 2>&1
	fi
	states=$(sed -n 's/^ *\([0-9][0-9]*\) states, stored.*/\1/p' log)
	if [ -n "$mutant" ]; then
		grep -Eq '^pan:1: (assertion violated|invalid end state)' log
	else
		grep -q 'errors: 0$' log &&
			! grep -Eq 'not completed|too small|MEMLIM' log
	fi
	# The exit status of the test above.
	# shellcheck disable=SC2181
	if [ $? -eq 0 ]; then
		echo "passed $model ${mutant:--} $states"
	else
		echo "failed $model ${mutant:--} ${states:-0}"
		cat log >&2
	fi
}

# The script calls itself for each search, so that several run at once.
if [ "${1-}" = --search ]; then
	mkdir "$2.${3-}" && cd "$2.${3-}" && ln -s "../$2.pml" . || exit 1
	search "$2" "${3-}" >result 2>failure
	rm -f pan pan.* # a search leaves megabytes
	exit 0
fi

# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
searches=$(find "$models" -name "*.pml" | wc -l)
mutants=${RT_MODEL_MUTANTS-}
[ $# = 0 ] || mutants=1
[ -z "$mutants" ] ||
	searches=$((searches + $(cat "$models"/*.pml | grep -c '^// mutant ')))
[ -z "${RT_SKIP_MODELS-}" ] || {
	skip "$searches" models "RT_SKIP_MODELS is set"
	exit 77
}
command -v spin >/dev/null || {
	skip "$searches" models "there is no spin" spin
	exit 77
}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cp "$models"/*.pml "$dir"
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
cd "$dir" || exit 99
[ $# -gt 0 ] || set -- *.pml

# The long searches come first.
for model; do
	echo "${model%.pml}"
done >list
[ -z "$mutants" ] || for model; do
	model=${model%.pml}
	sed -n "s/^\/\/ mutant \([A-Z_]*\):.*/$model \1/p" "$model.pml"
done >>list
xargs -P "$(side_by_side)" -L 1 sh "$self" --search <list

while read -r model mutant; do
	cat "$model.$mutant/failure" >&2
	cat "$model.$mutant/result" || echo "failed $model ${mutant:--} 0"
done <list >results
awk '
	$1 != "passed" { broken[++failed] = $2 " " $3; next }
	{ passed++ }
	$3 == "-" { printf "%-10s %9d states, all rules hold\n", $2, $4; next }
	{ found[$2]++; looked += $4 }
	END {
		for (model in found) {
			n += found[model]
		}
		if (n > 0) {
			printf "mutants    %9d states, %d found\n", looked, n
		}
		for (i = 1; i <= failed; i++) {
			print "models: broken: " broken[i]
		}
		printf "models: %d passed, %d failed\n", passed, failed
		exit failed > 0
	}' results
