// An object that was freed by hand is no object: every function refuses it.
#include "test/whole/misuse.h"

static const rt_type byte_type = {.struct_size = sizeof byte_type, .size = 1};
static int registered;

#define BY(name, ...)                                                          \
	static void *by_##name(size_t n)                                       \
	{                                                                      \
		return __VA_ARGS__;                                            \
	}

BY(words, rt_alloc(n))
BY(noscan, rt_alloc_noscan(n))
BY(uninit, rt_alloc_noscan_uninit(n))
BY(uncollectable, rt_alloc_uncollectable(RT_NOSCAN, n))
BY(uncollectable_words, rt_alloc_uncollectable(RT_WORDS, n))
BY(typed, rt_alloc_typed(&byte_type, n))
BY(kind, rt_alloc_kind(registered, n))

// A way to allocate n bytes, and the kind that is passed to rt_realloc.
static const struct {
	const char *name;
	void *(*call)(size_t n);
	int kind;
} freeable[] = {
    {"rt_alloc", by_words, RT_WORDS},
    {"rt_alloc_noscan", by_noscan, RT_NOSCAN},
    {"rt_alloc_noscan_uninit", by_uninit, RT_NOSCAN},
    {"rt_alloc_uncollectable", by_uncollectable, RT_NOSCAN},
    {"rt_alloc_uncollectable, words", by_uncollectable_words, RT_WORDS},
    {"rt_alloc_typed", by_typed, RT_TYPED},
    {"rt_alloc_kind", by_kind, RT_KIND_FIRST},
};

// judge_freed requires that nothing can be done with p, an object of n bytes
// that was freed.
static void judge_freed(const char *name, int kind, void *p, size_t n)
{
	const size_t to[] = {1, 16, n, n + 1, 2 * n, 100000};

	JUDGE(name, rt_free(p), RT_EINVAL);
	JUDGE(name, rt_resize(p, 0), RT_EINVAL);
	for (size_t i = 0; i < RT_ARRAY_LEN(to); i++) {
		JUDGE(name, rt_resize(p, to[i]), RT_EINVAL);
		JUDGE(name, some(rt_realloc(kind, p, to[i])), NOTHING);
	}
	JUDGE(name, some(rt_realloc(kind, p, 0)), NOTHING);
	JUDGE(name, rt_free(p), RT_EINVAL);
}

GROUP(freed);

// A freed slot is judged while it is on a list of this thread, when a second
// slot has been freed after it, and when the list has been flushed.
TEST(what_was_freed_is_no_object)
{
	static const size_t sizes[] = {17,   32,   100,	  1024,
				       1025, 5000, 32760, 100000};

	begin();
	registered = kind_make(.layout = RT_LAYOUT_WORDS);
	ck_assert_int_eq(registered, RT_KIND_FIRST);
	for (size_t i = 0; i < RT_ARRAY_LEN(freeable); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(sizes); j++) {
			const char *name = freeable[i].name;
			void *p = freeable[i].call(sizes[j]);
			void *q = freeable[i].call(sizes[j]);

			JUDGE(name, rt_free(p), RT_OK);
			judge_freed(name, freeable[i].kind, p, sizes[j]);
			JUDGE(name, rt_free(q), RT_OK);
			judge_freed(name, freeable[i].kind, p, sizes[j]);
			heap_healthy();
			judge_freed(name, freeable[i].kind, p, sizes[j]);
		}
	finish(RT_ARRAY_LEN(freeable) * RT_ARRAY_LEN(sizes) * 3 * 16);
}

// judge_next requires that the slot of n bytes at p, which this thread
// allocates next, is no object yet.  (A read of statistics would end the run.)
static void judge_next(const char *name, char *p, int kind, size_t n)
{
	JUDGE(name, rt_resize(p, n), RT_EINVAL);
	JUDGE(name, rt_resize(p, 2 * n), RT_EINVAL);
	JUDGE(name, some(rt_realloc(kind, p, n)), NOTHING);
	JUDGE(name, some(rt_realloc(kind, p, 2 * n)), NOTHING);
	JUDGE(name, some(rt_realloc(kind, p, 0)), NOTHING);
	JUDGE(name, rt_free(p), RT_EINVAL);
}

// Each function has a size class of its own, so no other object is there.
TEST(what_will_be_allocated_next_is_no_object)
{
	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(freeable); i++) {
		const char *name = freeable[i].name;
		const size_t n = 96 + 16 * i;
		char *p;

		if (freeable[i].kind > RT_WORDS)
			continue;
		p = freeable[i].call(n);
		JUDGE(name, rt_free(p), RT_OK);
		JUDGE(name, rt_gc(), RT_OK);
		p = freeable[i].call(n);
		judge_next(name, p - n, freeable[i].kind, n);
		JUDGE(name, (char *)freeable[i].call(n) == p - n, 1);
	}
	heap_healthy();
	finish(5 * 9);
}

// After refused calls no freed slot is allocated twice.
TEST(what_was_freed_is_allocated_once)
{
	enum { MANY = 100 };
	static void *p[MANY];

	begin();
	for (int i = 0; i < MANY; i++)
		p[i] = rt_alloc(48);
	for (int i = 0; i < MANY; i++) {
		JUDGE("an object", rt_free(p[i]), RT_OK);
		JUDGE("freed", some(rt_realloc(RT_WORDS, p[i], 40)), NOTHING);
		JUDGE("freed", rt_resize(p[i], 48), RT_EINVAL);
	}
	for (int i = 0; i < MANY; i++) {
		uintptr_t *q = rt_alloc(48);

		judge("an object", "not zero", heap_is_zero(q, 48), 1);
		q[0] = (uintptr_t)i;
		p[i] = q;
	}
	for (int i = 0; i < MANY; i++)
		judge("an object", "its own",
		      *(uintptr_t *)p[i] == (uintptr_t)i, 1);
	heap_healthy();
	finish(5 * MANY);
}
