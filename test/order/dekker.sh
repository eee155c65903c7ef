#!/bin/sh
# dekker.sh - code for aarch64 has a full barrier between the halves of each
# Dekker pair, a release where something is published, and an acquire where it
# is read.
#
# doc/memory-order.md names the functions of the pairs.  Each is compiled for
# aarch64 and disassembled.  After every atomic write there must be a "dmb ish"
# before the next load outside the stack, call, or return.  An atomic write is a
# store with release, an exclusive store, an instruction of LSE, or a call of
# gcc's out-of-line forms.  No run on x86-64 shows a missing barrier: this
# machine needs none, and an emulator of aarch64 on it reorders nothing.  So the
# test reads the code.
#
# In the functions that publish and follow, the writes with release and the
# reads with acquire are counted.  ThreadSanitizer notices missing ones only
# where they order words that are not atomic themselves.
#
# The first check is repeated with an atomic.h without barriers, the second with
# one that has neither release nor acquire.  Then every function must fail, or
# this test finds nothing.
#
# Skipped (77) without a compiler for aarch64.
#
# usage: [srcdir=DIR] [CC=...] test/order/dekker.sh
set -u
srcdir=${srcdir:-${top_srcdir:-.}}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
document=$srcdir/doc/memory-order.md
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# The source and the function of each half of a Dekker pair that writes and then
# reads.
writers='
runtime/world/heapstats heapstats_acquire
runtime/world/heapstats heapstats_read
runtime/world/proc proc_enlist
runtime/world/proc gate_wait
runtime/world/proc gate_sleep
runtime/world/proc proc_start_all
runtime/os/lock sema_acquire
runtime/os/lock sema_release
runtime/os/lock note_clear
runtime/os/lock note_wake
gc/cycle/sweep sweep_one
gc/cycle/sweep sweep_ensure
gc/cycle/swept swept_await
gc/cycle/swept follow
'
# Other functions that the document names: these only read.
readers='wait_even proc_first proc_next sweep_done'

# Source, function, and the least number of its writes with release.
publishers='
runtime/world/heapstats heapstats_release 1
runtime/world/pausering pausering_add 4
runtime/world/cyclering cyclering_add 2
runtime/world/stoptable stoptable_add 2
runtime/world/gcstats record_publish 2
runtime/os/throw throw_set_handler 2
runtime/os/lock mutex_unlock 2
runtime/os/lfstack lfstack_push 1
runtime/world/proc proc_enlist 2
runtime/world/proc proc_delist 1
runtime/world/proc proc_set_thread 1
runtime/world/proc proc_stopped 1
runtime/world/proc proc_block 1
runtime/world/proc proc_release 1
runtime/pages/arena arena_grow 1
runtime/pages/arena arena_publish 2
runtime/pages/arena arena_withdraw 2
runtime/pages/arena arena_set_state 1
runtime/spans/mspan set_lines 1
runtime/spans/mspan set_extent 2
runtime/spans/mspan mspan_free 1
runtime/spans/mheap mheap_alloc_large 1
gc/mark/overflow overflow_set 1
gc/mark/overflow overflow_raise 1
gc/mark/overflow overflow_leave 2
gc/cycle/sweep sweep_begin 1
gc/cycle/sweep sweep_lines 1
gc/cycle/sweep sweep_span 1
gc/cycle/cycle flip 1
gc/cycle/worker worker_release 1
gc/cycle/scavenger scavenger_release 1
gc/cycle/scavenger scavenger_dismiss 1
gc/host/lifetime lifetime_begin 1
gc/host/lifetime close_heap 1
'
# Source, function, and the least number of its reads with acquire.
followers='
runtime/world/heapstats wait_even 1
runtime/world/pausering read_once 2
runtime/world/pausering copy_slots 4
runtime/world/cyclering cyclering_read 2
runtime/world/stoptable read_once 2
runtime/world/gcstats record_read 2
runtime/os/throw handler_load 3
runtime/os/lock mutex_try 1
runtime/os/lock mutex_lock 1
runtime/os/lock note_woken 1
runtime/os/lock sema_serves 1
runtime/os/lfstack lfstack_pop 1
runtime/world/proc lock_open_gate 1
runtime/world/proc proc_unblock 2
runtime/world/proc proc_claim 1
runtime/world/proc proc_wait_all 1
runtime/world/proc thread_set_pending 1
runtime/spans/object object_find 1
runtime/spans/object object_test 1
runtime/spans/object lines_of_eight 3
runtime/spans/object extent_at 3
runtime/spans/object object_find 16
runtime/spans/object object_find_any 6
gc/mark/overflow overflow_take 1
gc/mark/overflow overflow_lower 1
gc/mark/overflow overflow_lower_left 1
gc/cycle/sweep claim 1
gc/cycle/sweep sweep_done 2
gc/cycle/sweep sweep_ensure 2
gc/mark/crew spun 1
gc/cycle/worker worker_claim 1
gc/cycle/scavenger scavenger_claim 1
gc/cycle/scavenger must_end 1
'

# compiler_for_aarch64 sets cc, which may carry options.
compiler_for_aarch64() {
	for cc in "${CC:-cc}" aarch64-linux-gnu-gcc; do
		case $($cc -dumpmachine 2>/dev/null) in
		aarch64*) return 0 ;;
		esac
	done
	return 1
}

# takes FLAG: true if the compiler knows it.
takes() {
	echo 'int x;' >"$dir/flag.c"
	$cc -Werror "$1" -c "$dir/flag.c" -o "$dir/flag.o" 2>/dev/null
}

# flags_taken FLAG...: prints the flags that the compiler knows.
flags_taken() {
	for flag; do
		takes "$flag" && printf '%s ' "$flag"
	done
}

# compile DIR LIST FLAG...: compiles the sources of a list into DIR.  Headers in
# DIR/include come before the sources' own.
compile() {
	out=$1
	mkdir -p "$out"
	printf '%s\n' "$2" |
		awk 'NF && !seen[$1]++ { print $1 }' >"$dir/sources"
	shift 2
	while read -r source; do
		# shellcheck disable=SC2086 # lists of options
		$cc -std=gnu11 -O2 -fPIC -pthread $apart "$@" \
			-I"$out/include" -I"$srcdir" -I"$srcdir/include" \
			${ATOMIC_OPS_CFLAGS-} -c "$srcdir/$source.c" \
			-o "$dir/object.o" &&
			"$objdump" -d --no-show-raw-insn "$dir/object.o" \
				>"$out/$(basename "$source").code" || return 1
	done <"$dir/sources"
}

# barriers FUNCTION CODE: prints what is wrong.  Returns 0 if nothing is, 1 if a
# barrier is missing, 2 if there was no atomic write to look at.
barriers() {
	awk -v label="<$1>:" '
		function complain(why) {
			print "  " why ": " $0
			bad = 1
		}
		$2 == label { inside = 1; next }
		!inside { next }
		/^$/ { exit }
		{ op = $2 }
		op == "dmb" && $3 == "ish" { open = 0; next }
		op ~ /^(ld(add|clr|set|eor)|swp|cas)/ || op ~ /^stl/ ||
		op == "bl" && /<__aarch64_/ {
			if (open)
				complain("second write without a barrier")
			open = 1
			writes++
			next
		}
		# The loop around an exclusive store belongs to the write.
		op == "stxr" || op ~ /^ldaxr/ || op ~ /^ldxr/ { next }
		op ~ /^ld/ && !/\[sp/ || op == "bl" || op == "blr" ||
		op == "svc" || op == "ret" || op == "b" && !(/<'"$1"'\+/) {
			if (open)
				complain("no barrier before")
		}
		END {
			if (writes == 0) {
				print "  no atomic write found"
				bad = 2
			}
			exit bad + 0
		}' "$2"
}

# without_barriers DIR: makes an atomic.h that orders like x86-64's.
without_barriers() {
	shadow=$1/include/runtime/base/atomic.h
	mkdir -p "$(dirname "$shadow")"
	sed 's/AO_nop_full()/((void)0)/' "$srcdir/runtime/base/atomic.h" >"$shadow"
}

# without_order DIR: makes an atomic.h in which nothing is a release or an
# acquire.
without_order() {
	shadow=$1/include/runtime/base/atomic.h
	mkdir -p "$(dirname "$shadow")"
	sed '/AO_nop_full/!s/\(AO_[a-z_]*\)_\(release\|acquire\|full\)(/\1(/' \
		"$srcdir/runtime/base/atomic.h" >"$shadow"
}

# ordered ORDER FUNCTION CODE: prints the number of accesses that have the order
# release, or acquire.
ordered() {
	awk -v label="<$2>:" -v kind="$1" '
		BEGIN {
			atomic = "(ld(add|clr|set|eor)|swp|cas)"
			if (kind == "release") {
				pattern = "^(stlr|stlxr|" atomic "a?l)$"
				helper = "<__aarch64_[a-z0-9]*_(acq_)?rel>"
			} else {
				pattern = "^(ldar|ldapr|ldaxr|" atomic "al?)$"
				helper = "<__aarch64_[a-z0-9]*_acq(_rel)?>"
			}
		}
		$2 == label { inside = 1; next }
		!inside { next }
		/^$/ { exit }
		$2 ~ pattern || $2 == "bl" && $0 ~ helper { n++ }
		END { print n + 0 }' "$3"
}

# every_order WANTED DIR WHAT: WANTED is 0 if every function must have its
# accesses in order, 1 if every function must lack some.
every_order() {
	for kind in release acquire; do
		list=$publishers
		[ $kind = release ] || list=$followers
		echo "$list" | awk NF >"$dir/list"
		while read -r source function least; do
			n=$(ordered $kind "$function" \
				"$2/$(basename "$source").code")
			enough=1
			[ "$n" -lt "$least" ] || enough=0
			[ $enough = "$1" ]
			verdict $? "$function $3: $n of $least with $kind"
		done <"$dir/list"
	done
}

# every_function WANTED DIR WHAT: WANTED is what barriers must return for every
# function: 0 if no barrier may be missing, 1 if one must be.
every_function() {
	echo "$writers" | awk NF >"$dir/list"
	while read -r source function; do
		barriers "$function" "$2/$(basename "$source").code" >"$dir/why"
		[ $? = "$1" ]
		status=$?
		verdict $status "$function $3"
		[ $status = 0 ] || cat "$dir/why"
	done <"$dir/list"
}

# documented: every function that the table of pairs names is known here.
documented() {
	awk -F '|' '/^## / { inside = ($0 == "## Dekker pairs") }
		inside && /^\|/ { print $3, $4 }' "$document" |
		tr '`' '\n' | grep -x '[a-z0-9]*_[a-z0-9_]*' | sort -u >"$dir/named"
	[ -s "$dir/named" ] || return 1
	# shellcheck disable=SC2086 # a list of words
	printf '%s\n' $writers $readers | sort -u >"$dir/known"
	! comm -23 "$dir/named" "$dir/known" | grep .
}

functions=$(echo "$writers$publishers$followers" | awk NF | wc -l)
functions=$((functions))
if ! compiler_for_aarch64; then
	skip $functions "dekker's functions" "no compiler for aarch64" \
		"gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
	exit 77
fi
# shellcheck disable=SC2086 # a list of options
if ! echo '#include <atomic_ops.h>' |
	$cc -E ${ATOMIC_OPS_CFLAGS-} - >/dev/null 2>&1; then
	skip $functions "dekker's functions" \
		"$cc does not find atomic_ops.h" libatomic-ops-dev
	exit 77
fi
objdump=$($cc -print-prog-name=objdump)

# Functions stay where their names are.
apart=$(flags_taken -fno-inline-functions -fno-inline-small-functions \
	-fno-inline-functions-called-once -fno-partial-inlining -fno-ipa-sra \
	-fno-ipa-cp)

documented
verdict $? "doc/memory-order.md names functions that are not tested here"
for atomics in $(flags_taken -moutline-atomics -mno-outline-atomics \
	-march=armv8.1-a); do
	compile "$dir/whole" "$writers$publishers$followers" "$atomics"
	verdict $? "the sources compile for aarch64 with $atomics"
	every_function 0 "$dir/whole" "lacks a barrier ($atomics)"
	without_barriers "$dir/broken"
	compile "$dir/broken" "$writers" "$atomics"
	every_function 1 "$dir/broken" "without its barriers is not found"
	every_order 0 "$dir/whole" "lacks order ($atomics)"
done
without_order "$dir/loose"
compile "$dir/loose" "$publishers$followers"
every_order 1 "$dir/loose" "without order is not found"
[ $passed -gt 1 ]
verdict $? "something was compiled"

verdict_sum
