#!/bin/sh
# run.sh - do the tests notice faults?  Seeds the faults of the list, one at a
# time.
#
# usage: srcdir=DIR test/mutants/run.sh [-s] [NAMES]
#
# The script works on a copy of the sources, with ccache if it is installed.
# With -s it builds nothing and says which faults can no longer be seeded.
# NAMES is a regular expression of names.  There are two sorts of fault.
#
# logic: such a fault is noticed ("killed") if one of its suites fails, or does
# not end in time.  If they all pass, the whole of `make check` runs.
#
# order: a word is written or read with less order than its protocol needs.  The
# processor may keep the order all the same, so neither a test that passes nor
# one that fails proves anything.  Only its judge kills such a fault.  The judge
# is the thread sanitizer, which must report a race in one of the suites named,
# or test/order/dekker.sh, which reads the code for aarch64.
#
# Without a fault, no suite and no judge may find anything.  The script prints a
# line for each fault, then the survivors with the reason that the list gives,
# and the sums.  It fails if fewer than 95 in 100 of a kind were noticed, or if
# one could not be seeded, built or judged.  test/models/run.sh runs the mutants
# of the models.
set -eu
LC_ALL=C
export LC_ALL
srcdir=$(cd "${srcdir:-.}" && pwd)
seed_only=
if [ "${1:-}" = -s ]; then
	seed_only=1
	shift
fi
wanted=${1:-.}
list=$srcdir/test/mutants/list
limit=${RT_MUTANT_SECONDS:-120} # a suite may take
tab=$(printf '\t')

# seeded prints each file with its fault, after a line with the names of both.
seeded() {
	while IFS=$tab read -r name kind file script judges why; do
		case $name in '' | '#'*) continue ;; esac
		[ "$wanted" = . ] ||
			printf '%s\n' "$name" | grep -Eq -e "$wanted" || continue
		printf '@@ %s %s\n' "$name" "$file"
		sed "$script" "$srcdir/$file" || true
	done <"$list"
}

# seeds_all checks that each fault changes or moves one line of its file, and
# has a name of its own.  A fault costs one process: a thousand must not take
# long.
seeds_all() {
	seeded 2>/dev/null | awk -v srcdir="$srcdir" '
	function load(file,  line) {
		if (file in lines)
			return
		lines[file] = 0
		while ((getline line <(srcdir "/" file)) > 0)
			line_of[file, ++lines[file]] = line
		close(srcdir "/" file)
	}
	function begin(  i) {
		load(file)
		split("", left)
		for (i = 1; i <= lines[file]; i++)
			left[line_of[file, i]]++
		kept = added = 0
	}
	function end() {
		if (name == "")
			return
		if (taken[name]++)
			print name ": the name is taken"
		if (lines[file] - kept != 1 || added != 1)
			print name ": NOT SEEDED: see " file
	}
	$1 == "@@" && NF == 3 {
		end()
		name = $2
		file = $3
		begin()
		next
	}
	{ if (left[$0]-- > 0) kept++; else added++ }
	END { end() }
	'
}

if [ -n "$seed_only" ]; then
	wrong=$(seeds_all)
	[ -z "$wrong" ] && exit
	printf '%s\n' "$wrong"
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/clean"     # suites and judges that find nothing without a fault
: >"$work/survivors"

# The sanitizer needs its shadow memory at fixed addresses.
fixed=
if setarch "$(uname -m)" -R true 2>/dev/null; then
	fixed="setarch $(uname -m) -R"
fi

# The builds have sources of their own, copied as they are.
mkdir "$work/source" "$work/logic" "$work/order"
(cd "$srcdir" && tar -cf - --exclude=.git --exclude='*.o' --exclude='*.lo' \
	--exclude=.libs --exclude='*.la' --exclude='*.a' .) |
	tar -xf - -C "$work/source"
if [ -f "$work/source/config.status" ]; then
	make -C "$work/source" distclean >"$work/log" 2>&1
fi

if command -v ccache >/dev/null; then
	CC="ccache ${CC:-cc}"
	export CC
fi

# configured KIND FLAG...
configured() {
	kind=$1
	shift
	[ -f "$work/$kind/Makefile" ] || (cd "$work/$kind" &&
		"$work/source/configure" --disable-shared CFLAGS='-O1 -g' \
			"$@" >"$work/log" 2>&1) ||
		{ tail "$work/log" >&2 && exit 2; }
}

# seed FILE SCRIPT succeeds if the script changed or moved exactly one line.
seed() {
	[ -f "$work/source/$1" ] || return 1
	cp "$work/source/$1" "$work/original"
	sed "$2" "$work/original" >"$work/source/$1"
	[ "$(diff "$work/original" "$work/source/$1" | grep -c '^[<>]')" = 2 ]
}

# program NAME prints the path of the program, as test/list.am has it.
program() {
	sed -n "s|^[a-z_]* += \\(test/[a-z/]*/${1##*/}\\)\\( #.*\\)\\{0,1\\}\$|\\1|p" \
		"$srcdir/test/list.am"
}

# build KIND SUITES
build() {
	programs=
	for suite in $2; do programs="$programs $(program "$suite")"; done
	# shellcheck disable=SC2086 # a list
	make -C "$work/$1" -j2 $programs >"$work/log" 2>&1
}

# suite KIND NAME returns the suite's exit status; 124 or 137 if it does not
# end.
suite() {
	# shellcheck disable=SC2086 # a command
	(cd "$work/$1" && timeout -k 5 "$limit" $fixed "./$(program "$2")") \
		>"$work/log" 2>&1
}

all_pass() {
	RT_SKIP_MODELS=1 timeout -k 5 900 make -C "$work/logic" -j2 check \
		>"$work/log" 2>&1
}

code_passes() {
	(cd "$work/source" && srcdir=. sh test/order/dekker.sh) >"$work/log" 2>&1
}

# finds_nothing WHAT runs WHAT: "code", "make check", or a kind and a suite.
finds_nothing() {
	case $1 in
	code) code_passes ;;
	"make check") all_pass ;;
	*) suite "${1%% *}" "${1#* }" ;;
	esac
}

# clean WHAT exits unless WHAT finds nothing without a fault; it runs WHAT once.
clean() {
	grep -qxF "$1" "$work/clean" && return
	if ! finds_nothing "$1"; then
		echo "mutants: $1 fails without any fault" >&2
		tail "$work/log" >&2
		exit 2
	fi
	echo "$1" >>"$work/clean"
}

# prepare KIND JUDGES checks that the judges find nothing without the fault.
prepare() {
	case $1:$2 in
	order:code)
		clean code
		return
		;;
	order:*)
		configured order --enable-sanitizer=thread
		CK_TIMEOUT_MULTIPLIER=10
		TSAN_OPTIONS=handle_segv=0:handle_abort=0:halt_on_error=1
		export CK_TIMEOUT_MULTIPLIER TSAN_OPTIONS
		;;
	*)
		configured logic
		unset CK_TIMEOUT_MULTIPLIER TSAN_OPTIONS
		;;
	esac
	build "$1" "$2" || { tail "$work/log" >&2 && exit 2; }
	for suite in $2; do
		clean "$1 $suite"
	done
}

# noticed_logic SUITES prints what noticed the fault, if anything did.
noticed_logic() {
	for suite in $1; do
		status=0
		suite logic "$suite" || status=$?
		case $status in
		0) ;;
		124 | 137) echo "$suite, which does not end" && return ;;
		*) echo "$suite" && return ;;
		esac
	done
	all_pass || echo "make check"
}

# noticed_order JUDGES prints what noticed the fault, if anything did.
noticed_order() {
	if [ "$1" = code ]; then
		code_passes || echo "code"
		return
	fi
	for suite in $1; do
		suite order "$suite" || ! grep -q 'WARNING: ThreadSanitizer' \
			"$work/log" || { echo "tsan in $suite" && return; }
	done
}

while IFS=$tab read -r name kind file script judges why; do
	case $name in '' | '#'*) continue ;; esac
	printf '%s\n' "$name" | grep -Eq -e "$wanted" || continue
	prepare "$kind" "$judges" </dev/null
	if ! seed "$file" "$script" || { [ "$judges" != code ] &&
		! build "$kind" "$judges" </dev/null; }; then
		cp "$srcdir/$file" "$work/source/$file" || true
		printf '%-20s %s\n' "$name" "NOT SEEDED: see $file"
		echo "$kind broken" >>"$work/results"
		continue
	fi
	case $kind in
	order) by=$(noticed_order "$judges" </dev/null) ;;
	*) by=$(noticed_logic "$judges" </dev/null) ;;
	esac
	cp "$work/original" "$work/source/$file"
	# A failure counts only if make check passes without the fault.
	[ "$by" != "make check" ] || clean "make check" </dev/null
	if [ -n "$by" ]; then
		printf '%-20s killed by %s\n' "$name" "$by"
		echo "$kind killed ${by%% *}" >>"$work/results"
	else
		printf '%-20s SURVIVED\n' "$name"
		echo "$name: ${why:-the list gives no reason}" >>"$work/survivors"
		echo "$kind survived" >>"$work/results"
	fi
done <"$list"

awk '
	{ n[$1]++; verdict[$1, $2]++; by[$3]++ }
	END {
		logic = n["logic"] - verdict["logic", "broken"]
		order = n["order"] - verdict["order", "broken"]
		printf "%d logic faults, %d killed\n", logic,
			verdict["logic", "killed"]
		printf "%d order faults, %d killed (%d by the thread sanitizer, %d by the code for aarch64)\n",
			order, verdict["order", "killed"], by["tsan"], by["code"]
		broken = verdict["logic", "broken"] + verdict["order", "broken"]
		printf "%d not seeded\n", broken
		exit broken != 0 || logic + order == 0 ||
			verdict["logic", "killed"] * 100 < logic * 95 ||
			verdict["order", "killed"] * 100 < order * 95
	}' "$work/results" || status=1
if [ -s "$work/survivors" ]; then
	echo "survivors:"
	sed 's/^/  /' "$work/survivors"
else
	echo "survivors: none"
fi
exit "${status:-0}"
