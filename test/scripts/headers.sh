#!/bin/sh
# headers.sh - every public header compiles alone, and twice, as C99 and as
# C++11, without a warning, with every installed compiler.  So does a host that
# uses what is inline.
#
# usage: srcdir=DIR CC=... test/scripts/headers.sh
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"

# compile HEADER COMPILER OPTION...
compile() {
	header=$1
	shift
	printf '#include <rt/%s>\n#include <rt/%s>\nextern int rt_alone;\n' \
		"$header" "$header" |
		"$@" -I"$srcdir/include" -fsyntax-only -Wall -Wextra -Wpedantic \
			-Wshadow -Wundef -Werror -
	verdict $? "rt/$header: $*"
}

# package_of COMPILER
package_of() {
	case $1 in
	clang*) echo clang ;;
	*) echo "$1" ;;
	esac
}

# compile_all COMPILER OPTION...
compile_all() {
	command -v "$1" >/dev/null 2>&1 || {
		skip "$(find "$srcdir/include/rt" -name "*.h" | wc -l)" "headers with $1" \
			"there is no $1" "$(package_of "$1")"
		return
	}
	for path in "$srcdir"/include/rt/*.h; do
		compile "$(basename "$path")" "$@"
	done
}

# use COMPILER OPTION...: compiles a host that uses all that the headers define
# inline.
use() {
	command -v "$1" >/dev/null 2>&1 || return 0
	if "$@" -I"$srcdir/include" -fsyntax-only -O2 -Wall -Wextra \
		-Wpedantic -Wshadow -Wundef -Wconversion -Wsign-conversion \
		-Wcast-qual -Werror - <<'END'; then
#include <rt/rt.h>

struct node {
	struct node *next;
	uintptr_t word;
};

#ifdef __cplusplus
template <typename A, typename B> static inline int kind_of()
{
	return sizeof(A) < sizeof(B) ? RT_WORDS : RT_NOSCAN;
}
template <typename A, typename B> static inline size_t size_of()
{
	return sizeof(A) + sizeof(B);
}
#endif

void use(rt_thread *t, struct node *n, size_t size);

void use(rt_thread *t, struct node *n, size_t size)
{
	rt_keep_alive(rt_alloc(size));
	rt_keep_alive(rt_alloc(24));
	rt_keep_alive(rt_alloc_noscan(size));
	rt_keep_alive(rt_alloc_noscan(8));
	rt_keep_alive(rt_alloc_noscan_uninit(size));
	rt_keep_alive(rt_alloc_in(t, size));
	rt_keep_alive(rt_alloc_noscan_in(t, size));
	rt_keep_alive(rt_alloc_kind_in(t, RT_WORDS, size));
	struct node *volatile next = NULL;
	const struct node *const first = n;
	rt_frame *saved = rt_frames_save();
	RT_FRAME(&n);
	RT_FRAME(&next, &first);
	RT_FRAME(&n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n, &n,
		 &size);
	rt_frames_restore(saved);
	rt_stack_desc d;
	rt_stack_desc_init(&d);
	d.sp = &n;
	d.sp = &next;
	d.sp = &first;
	d.sp = &size;
	d.frames = &saved;
	enum { MASK = 7, BITS = 2 };
	static const rt_value_format tags = RT_FORMAT_LOW_TAG(MASK, BITS);
	static const rt_value_format pairs = RT_FORMAT_PAIR(0x40, BITS);
	static const rt_value_format range = RT_FORMAT_PAIR_RANGE(1, 5L);
	const unsigned lo = 3;
	const rt_value_format from = RT_FORMAT_PAIR_RANGE(lo, size);
	rt_keep_alive(&tags);
	rt_keep_alive(&pairs);
	rt_keep_alive(&range);
	rt_keep_alive(&from);
#ifdef __cplusplus
	rt_keep_alive(rt_alloc_of(kind_of<int, long>(), size));
	rt_keep_alive(rt_alloc_kind_in(t, kind_of<int, long>(), size));
	rt_keep_alive(rt_alloc(size_of<int, long>()));
	rt_keep_alive(rt_alloc_noscan(size_of<int, long>()));
#endif
	RT_STORE(n, &n->next, n);
	RT_STORE(n, &n->next, NULL);
	RT_STORE(n, &n->next, &n->word);
	RT_STORE(n, &n->word, 3);
	RT_STORE(n, &n->word, size);
}
END
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "headers: a host: $*"
	fi
}

# compiles STATEMENT COMPILER OPTION...: does a function with this statement
# compile?
compiles() {
	statement=$1
	shift
	"$@" -I"$srcdir/include" -fsyntax-only -w - <<END 2>/dev/null
#include <rt/rt.h>
struct big { struct big *next; long n; };
struct opaque;
extern struct opaque *o;
void f(struct big *a, void *v, char c);
void f(struct big *a, void *v, char c)
{
	$statement;
}
END
}

# refuse_all COMPILER OPTION...: RT_FRAME accepts &a, and refuses the other
# arguments.
refuse_all() {
	command -v "$1" >/dev/null 2>&1 || return 0
	compiles 'RT_FRAME(&a)' "$@"
	verdict $? "RT_FRAME(&a): $*"
	for wrong in 'RT_FRAME(a)' 'RT_FRAME(&a, a)' 'RT_FRAME(a, &a)' \
		'RT_FRAME(&c)' 'RT_FRAME(&*a)' 'RT_FRAME(v)' 'RT_FRAME(o)' \
		'RT_FRAME(&a,&a,&a,&a,&a,&a,&a,&a,&a,&a,&a,&a,&a,&a,&a,a)'; do
		! compiles "$wrong" "$@"
		verdict $? "$wrong: $*"
	done
}

# shellcheck disable=SC2086 # CC may carry options
use ${CC:-cc} -x c -std=c99
# shellcheck disable=SC2086 # CC may carry options
compile_all ${CC:-cc} -x c -std=c99 -Wstrict-prototypes -Wmissing-prototypes
for compiler in gcc clang; do
	compile_all $compiler -x c -std=c99
	compile_all $compiler -x c -std=c11
	use $compiler -x c -std=c99
	refuse_all $compiler -x c -std=c99
done
for compiler in g++ clang++; do
	compile_all $compiler -x c++ -std=c++11
	compile_all $compiler -x c++ -std=c++17
	use $compiler -x c++ -std=c++11 -Wold-style-cast
	use $compiler -x c++ -std=c++17 -Wold-style-cast
	use $compiler -x c++ -std=c++20 -Wold-style-cast
	refuse_all $compiler -x c++ -std=c++11
done

verdict_sum
