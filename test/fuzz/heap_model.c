#include "test/fuzz/heap_model.h"

#include "runtime/pages/arena.h"

uintptr_t *model_word(const struct model_object *o, size_t i)
{
	uintptr_t *w = (uintptr_t *)o->base;

	if (i >= o->nwords / 2)
		i += o->size / sizeof *w - o->nwords;
	return w + i;
}

uint64_t model_sum(const struct model_object *o)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < o->nwords; i++)
		sum = (sum ^ *model_word(o, i)) * UINT64_C(0x9e3779b97f4a7c15) +
		      1;
	return sum;
}

struct model_object *model_add(struct model *m, void *p, size_t n, int kind)
{
	struct model_object *o = &m->object[m->n];
	uintptr_t base = (uintptr_t)rt_base(p);

	for (unsigned i = 0; i < m->n; i++)
		if (m->object[i].base == base)
			return &m->object[i];
	REQUIRE(m->n < MODEL_OBJECTS);
	*o = (struct model_object){.base = base, .kind = kind};
	o->size = n > MODEL_LARGE ? n : rt_size(p);
	if (kind != RT_NOSCAN || n >= 16)
		o->nwords = base_min(o->size / sizeof(uint64_t), MODEL_WORDS);
	o->sum = model_sum(o);
	m->n++;
	return o;
}

struct model_object *model_find(struct model *m, uintptr_t p)
{
	for (unsigned i = 0; i < m->n; i++)
		if (p - m->object[i].base < m->object[i].size)
			return &m->object[i];
	return NULL;
}

void model_reach_object(struct model *m, struct model_object *o)
{
	if (o->reached)
		return;
	o->reached = true;
	for (size_t i = 0; o->kind == RT_WORDS && i < o->nwords; i++)
		model_reach(m, model_word(o, i), 1);
}

// The low three bits of a word may hold anything.
void model_reach(struct model *m, const uintptr_t *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uintptr_t p = w[i] & ~(uintptr_t)7;
		struct model_object *o = p ? model_find(m, p) : NULL;

		if (o)
			model_reach_object(m, o);
	}
}

// Requests of less than 16 bytes without pointers share an object.
void model_reach_references(struct model *m, const uintptr_t *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct model_object *o = w[i] ? model_find(m, w[i]) : NULL;
		bool shared = o && o->kind == RT_NOSCAN && o->size == 16;

		if (o && (o->base == w[i] || shared))
			model_reach_object(m, o);
	}
}

void model_collect(struct model *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n; i++) {
		struct model_object o = m->object[i];

		if (!o.reached)
			continue;
		REQUIRE(rt_base((void *)(o.base + o.size - 1)) ==
			(void *)o.base);
		REQUIRE(model_sum(&o) == o.sum);
		o.reached = false;
		m->object[n++] = o;
	}
	m->n = n;
}

uint64_t model_healthy(void)
{
	static rt_memstats m;
	struct rt_verify v;

	REQUIRE(rt_heap_verify(&v) == RT_OK);
	if (v.errors > 0)
		fprintf(stderr, "%s\n", v.first);
	REQUIRE(v.errors == 0);
	REQUIRE(rt_read_memstats(&m) == RT_OK);
	REQUIRE(m.heap_objects == v.objects && m.heap_alloc == v.bytes);
	REQUIRE(m.mallocs - m.frees == m.heap_objects);
	REQUIRE(m.heap_sys == m.heap_idle + m.heap_inuse);
	REQUIRE(m.heap_released <= m.heap_idle);
	REQUIRE(m.sys == m.heap_sys + m.stack_sys + m.mspan_sys + m.mcache_sys +
			     m.buckhash_sys + m.gc_sys + m.other_sys);
	return v.objects;
}

size_t input_size(struct input *in)
{
	static const uint32_t most[] = {16, 64, 256, 1100, 9000, 65536};
	unsigned how = input_u8(in);
	size_t n = 1 + input_below(in, most[how % RT_ARRAY_LEN(most)]);

	return how >= 250 ? 4 * n : n;
}

uintptr_t input_pointer(struct input *in, const struct model *m)
{
	unsigned how = input_u8(in);
	const struct model_object *o =
	    m->n > 0 ? &m->object[input_below(in, m->n)] : NULL;

	switch (how % 8) {
	case 0:
		return input_uint(in, 8);
	case 1:
		return arena.base + input_uint(in, 4) % (arena_used() + 8192);
	case 2:
		return o ? o->base + o->size + how / 8 : 0;
	case 3:
		return o ? o->base + (uintptr_t)(int8_t)input_u8(in) : 0;
	case 4:
		return o ? o->base + input_uint(in, 3) % o->size : 0;
	default:
		return o ? o->base | how >> 5 : 0;
	}
}
