#!/bin/sh
# run.sh - makes every fuzz target look for new inputs for a while.
#
# usage: srcdir=DIR [CLANG=...] [ATOMIC_OPS_CFLAGS=...] [ATOMIC_OPS_LIBS=...] \
#        test/fuzz/run.sh [TARGET...]
#
# Builds the library with clang's fuzzer, address and undefined behaviour
# sanitizers in fuzz.build.  Runs each target for RT_FUZZ_SECONDS (10), from the
# inputs in test/corpus and those of earlier runs in fuzz.build/corpus.  An
# input that fails a target stays as fuzz.build/TARGET-crash-*; when the bug is
# mended, the input goes into test/corpus.  RT_FUZZ_KEEP=1 merges the new inputs
# into test/corpus, as few as reach the same code.
set -u
srcdir=${srcdir-.}
seconds=${RT_FUZZ_SECONDS-10}
clang=${CLANG-clang}
build=fuzz.build
targets=${*:-ops faults pages lookup roots kinds formats options sizes}
passed=0
failed=0
flags="-std=gnu11 -g -O1 -pthread -DRT_TEST -fno-sanitize-recover=undefined
	-I$srcdir -I$srcdir/include ${ATOMIC_OPS_CFLAGS-}"
libs="${ATOMIC_OPS_LIBS--latomic_ops} -lpthread"
ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0:${ASAN_OPTIONS-}
UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS-}
export ASAN_OPTIONS UBSAN_OPTIONS

# compile SOURCE OBJECT
compile() {
	# shellcheck disable=SC2086 # lists of words
	"$clang" $flags -fsanitize=fuzzer-no-link,address,undefined \
		-c "$1" -o "$2"
}

have_fuzzer() {
	echo 'int LLVMFuzzerTestOneInput(const char *, unsigned long);
	int LLVMFuzzerTestOneInput(const char *p, unsigned long n)
	{ return !p && n; }' >"$build/try.c"
	"$clang" -fsanitize=fuzzer,address,undefined "$build/try.c" \
		-o "$build/try" 2>/dev/null
}

# build_library compiles the library, and of the harness what targets need: all
# of the engine except shadow_random.c, which needs Check.
build_library() {
	for source in \
		$(find "$srcdir/runtime" "$srcdir/gc" -name '*.c') \
		$(find "$srcdir/test/harness" -name 'shadow_*.c' \
			! -name shadow_random.c) \
		"$srcdir/test/harness/fault.c" \
		"$srcdir/test/harness/schedpoint.c" \
		"$srcdir/test/harness/constant.c" \
		"$srcdir/test/harness/fiber.c" \
		"$srcdir/test/harness/recount.c" \
		"$srcdir/test/harness/ledger.c"; do
		object=$build/$(echo "${source#"$srcdir"/}" | tr / _).o
		compile "$source" "$object" || return
	done
	rm -f "$build/libfuzzed.a"
	ar rc "$build/libfuzzed.a" "$build"/*.c.o
}

# fuzz TARGET
fuzz() {
	program=$build/fuzz_$1
	found=$build/corpus/$1
	kept=$srcdir/test/corpus/$1

	mkdir -p "$found"
	# shellcheck disable=SC2086 # lists of words
	"$clang" $flags -fsanitize=fuzzer,address,undefined \
		"$srcdir/test/fuzz/fuzz_$1.c" "$build/libfuzzed.a" $libs \
		-o "$program" || return
	"$program" -max_total_time="$seconds" -max_len=4096 -len_control=10 \
		-timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
		-artifact_prefix="$build/$1-" "$found" "$kept" \
		>"$build/$1.log" 2>&1 || {
		tail -n 60 "$build/$1.log"
		return 1
	}
	sed -n "s/^stat::number_of_executed_units: */$1: inputs run: /p" \
		"$build/$1.log"
	[ "${RT_FUZZ_KEEP-}" != 1 ] ||
		"$program" -set_cover_merge=1 -use_counters=0 \
			-max_len=4096 "$kept" "$found" \
			>>"$build/$1.log" 2>&1
}

mkdir -p "$build" || exit
if ! have_fuzzer; then
	echo "fuzz: $clang has no fuzzer (on Debian: clang, libclang-rt-dev)" >&2
	exit 1
fi
build_library || exit
for target in $targets; do
	if fuzz "$target"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
