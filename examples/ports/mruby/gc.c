// gc.c - mruby on rtheap: takes the place of mruby's src/gc.c.
//
// An object is traced by a callback that knows mruby's types.  There are no
// colours, no write barriers and no arena for new objects: the collector looks
// at the C stack itself.  All states of a process share the heap.
// RBasic.gcnext is not needed for a list, so it says which state an object
// belongs to.
//
// Proc, Data and Fiber own something outside the heap.  They have a kind of
// their own with a destructor.  It runs at the end of a collection that a
// program requests, and otherwise in the first allocation of an object after a
// collection, as in mruby.  An Env needs none: it owns nothing outside the
// heap.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mruby.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/error.h>
#include <mruby/gc.h>
#include <mruby/hash.h>
#include <mruby/istruct.h>
#include <mruby/presym.h>
#include <mruby/proc.h>
#include <mruby/range.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <mruby/rtheap.h>

// Sizes of objects: those with one word behind the header, and all others.
enum { SMALL = sizeof(struct RObject), LARGE = 48 };

mrb_static_assert(sizeof(struct RFiber) <= SMALL);
mrb_static_assert(sizeof(struct RInteger) <= SMALL);
mrb_static_assert(sizeof(struct RString) <= LARGE);
mrb_static_assert(sizeof(struct RStringEmbed) <= LARGE);
mrb_static_assert(sizeof(struct RArray) <= LARGE);
mrb_static_assert(sizeof(struct RHash) <= LARGE);
mrb_static_assert(sizeof(struct RClass) <= LARGE);
mrb_static_assert(sizeof(struct RProc) <= LARGE);
mrb_static_assert(sizeof(struct REnv) <= LARGE);
mrb_static_assert(sizeof(struct RData) <= LARGE);
mrb_static_assert(sizeof(struct RRange) <= LARGE);
mrb_static_assert(sizeof(struct RBreak) <= LARGE);
mrb_static_assert(sizeof(struct RException) <= LARGE);
mrb_static_assert(sizeof(struct RIStruct) <= LARGE);

static const rt_value_format values = RT_FORMAT_LOW_TAG(7, 0);

static int drops_ready;     // a collection has found dead objects
static int disabled;	    // states with GC.disable
static int percent = 200;   // gc_percent while disabled is 0
static int verify;	    // MRUBY_VERIFY is in the environment

// The notes that write_notes writes about this process.
static struct {
	unsigned long long asked;    // times that the witness was traced
	unsigned long long states;   // that have ended
	unsigned long long verified; // verifications that found no error
} notes;

mrb_int mrb_ci_nregs(mrb_callinfo *ci);

static void must(int error, const char *what)
{
	if (error < 0) {
		fprintf(stderr, "mruby: %s: %s\n", what, rt_strerror(error));
		abort();
	}
}

// ---- References ----

static inline void tell_value(rt_tracer *t, mrb_value v)
{
	if (!mrb_immediate_p(v))
		rt_trace_ptr(t, mrb_ptr(v));
}

// used returns the end of the part of a stack of values that is in use.
static mrb_value *used(const struct mrb_context *c)
{
	mrb_value *top = c->ci && c->ci->stack
			     ? c->ci->stack + mrb_ci_nregs(c->ci)
			     : c->stbase;

	return top < c->stend ? top : c->stend;
}

static void tell_context(rt_tracer *t, const struct mrb_context *c)
{
	mrb_callinfo *ci;

	if (c->status == MRB_FIBER_TERMINATED)
		return;
	if (c->stbase)
		rt_trace_values(t, c->stbase, used(c), &values);
	if (c->cibase) {
		for (ci = c->cibase; ci <= c->ci; ci++) {
			rt_trace_ptr(t, ci->proc);
			rt_trace_ptr(t, ci->u.target_class);
		}
	}
	rt_trace_ptr(t, c->fib);
	if (c->prev)
		rt_trace_ptr(t, c->prev->fib);
}

// The values of an Env are on a stack, or in an object of the heap.  On a stack
// they keep its fiber, so a fiber that died has no Env that lives.
static void tell_env(rt_tracer *t, const struct REnv *e)
{
	if (MRB_ENV_ONSTACK_P(e)) {
		if (e->cxt)
			rt_trace_ptr(t, e->cxt->fib);
		rt_trace_values(t, e->stack, e->stack + MRB_ENV_LEN(e),
				&values);
	} else {
		rt_trace_ptr(t, e->stack);
	}
}

static void tell_array(rt_tracer *t, const struct RArray *a)
{
	mrb_int i;

	if (ARY_EMBED_P(a)) {
		for (i = 0; i < ARY_EMBED_LEN(a); i++)
			tell_value(t, a->as.ary[i]);
		return;
	}
	rt_trace_ptr(t, a->as.heap.ptr);
	if (ARY_SHARED_P(a))
		rt_trace_ptr(t, a->as.heap.aux.shared);
}

static void tell_string(rt_tracer *t, const struct RString *s)
{
	if (RSTR_EMBED_P(s))
		return;
	rt_trace_ptr(t, s->as.heap.ptr);
	if (RSTR_SHARED_P(s) || RSTR_FSHARED_P(s))
		rt_trace_ptr(t, s->as.heap.aux.shared);
}

// trace tells the references of an object of either kind.
static void trace(rt_tracer *t, void *p, size_t size, void *arg)
{
	const struct RBasic *obj = (const struct RBasic *)p;

	(void)size, (void)arg;
	rt_trace_ptr(t, obj->c);
	switch (obj->tt) {
	case MRB_TT_CLASS:
	case MRB_TT_MODULE:
	case MRB_TT_SCLASS:
	case MRB_TT_ICLASS:
		rt_trace_ptr(t, ((const struct RClass *)p)->iv);
		rt_trace_ptr(t, ((const struct RClass *)p)->mt);
		rt_trace_ptr(t, ((const struct RClass *)p)->super);
		break;
	case MRB_TT_OBJECT:
	case MRB_TT_DATA:
		rt_trace_ptr(t, ((const struct RObject *)p)->iv);
		break;
	case MRB_TT_PROC:
		rt_trace_ptr(t, ((const struct RProc *)p)->upper);
		rt_trace_ptr(t, ((const struct RProc *)p)->e.env);
		break;
	case MRB_TT_ENV:
		tell_env(t, (const struct REnv *)p);
		break;
	case MRB_TT_FIBER:
		if (((const struct RFiber *)p)->cxt)
			tell_context(t, ((const struct RFiber *)p)->cxt);
		break;
	case MRB_TT_STRUCT:
	case MRB_TT_ARRAY:
		tell_array(t, (const struct RArray *)p);
		break;
	case MRB_TT_HASH:
		rt_trace_ptr(t, ((const struct RHash *)p)->iv);
		rt_trace_ptr(t, ((const struct RHash *)p)->hsh.ea);
		break;
	case MRB_TT_STRING:
		tell_string(t, (const struct RString *)p);
		break;
	case MRB_TT_RANGE:
		tell_value(t, RANGE_BEG((const struct RRange *)p));
		tell_value(t, RANGE_END((const struct RRange *)p));
		break;
	case MRB_TT_BREAK:
		rt_trace_ptr(t, mrb_break_proc_get((struct RBreak *)p));
		tell_value(t, mrb_break_value_get((struct RBreak *)p));
		break;
	case MRB_TT_EXCEPTION:
		rt_trace_ptr(t, ((const struct RException *)p)->iv);
		rt_trace_ptr(t, ((const struct RException *)p)->mesg);
		break;
	case MRB_TT_UNDEF:
		notes.asked++; // see make_witness
		break;
	default:
		break;
	}
}

// describe says of which of mruby's types an object is.
static size_t describe(const void *obj, size_t size, char *buf, size_t n,
		       void *arg)
{
	static const char *const names[] = {
#define NAME(tt, type, name) [tt] = (name),
	    MRB_VTYPE_FOREACH(NAME)
#undef NAME
	};
	const char *name = names[((const struct RBasic *)obj)->tt];
	const size_t len = strlen(name);

	(void)size, (void)arg;
	return len <= n ? (memcpy(buf, name, len), len) : 0;
}

// roots tells what a state refers to.  It also clears the method cache, whose
// keys are addresses of classes, which may die now.
static void roots(rt_tracer *t, void *arg)
{
	mrb_state *mrb = (mrb_state *)arg;
	struct mrb_context *c;
	int i;

#ifndef MRB_NO_METHOD_CACHE
	memset(mrb->cache, 0, sizeof mrb->cache);
#endif
	for (i = 0; i < mrb->gc.arena_idx; i++)
		rt_trace_ptr(t, mrb->gc.arena[i]);
	rt_trace_ptr(t, mrb->globals);
	rt_trace_ptr(t, mrb->exc);
	rt_trace_ptr(t, mrb->top_self);
	rt_trace_ptr(t, mrb->object_class);
	rt_trace_ptr(t, mrb->class_class);
	rt_trace_ptr(t, mrb->module_class);
	rt_trace_ptr(t, mrb->proc_class);
	rt_trace_ptr(t, mrb->string_class);
	rt_trace_ptr(t, mrb->array_class);
	rt_trace_ptr(t, mrb->hash_class);
	rt_trace_ptr(t, mrb->range_class);
#ifndef MRB_NO_FLOAT
	rt_trace_ptr(t, mrb->float_class);
#endif
	rt_trace_ptr(t, mrb->integer_class);
	rt_trace_ptr(t, mrb->true_class);
	rt_trace_ptr(t, mrb->false_class);
	rt_trace_ptr(t, mrb->nil_class);
	rt_trace_ptr(t, mrb->symbol_class);
	rt_trace_ptr(t, mrb->kernel_module);
	rt_trace_ptr(t, mrb->eException_class);
	rt_trace_ptr(t, mrb->eStandardError_class);
	rt_trace_ptr(t, mrb->nomem_err);
	rt_trace_ptr(t, mrb->stack_err);
	if (mrb->root_c && mrb->root_c != mrb->c)
		tell_context(t, mrb->root_c);
	for (c = mrb->c; c; c = c->prev)
		tell_context(t, c);
}

// ---- Death ----

// clear makes an object refer to nothing.  A stale word may keep it, and what
// it refers to may be gone.
static inline void clear(struct RBasic *obj, size_t size)
{
	if (size >= LARGE) // a constant size needs no call
		memset(obj, 0, LARGE);
	else
		memset(obj, 0, SMALL);
	obj->tt = MRB_TT_FREE;
}

// drop_object ends what a dead object owns outside the heap.  all tells whether
// its whole state ends.
static void drop_object(struct RBasic *obj, mrb_bool all)
{
	mrb_state *mrb = (mrb_state *)(void *)obj->gcnext;

	switch (obj->tt) {
	case MRB_TT_PROC: {
		const struct RProc *p = (struct RProc *)obj;

		if (!MRB_PROC_CFUNC_P(p) && p->body.irep) {
			if (all)
				mrb_irep_cutref(mrb, (mrb_irep *)p->body.irep);
			mrb_irep_decref(mrb, (mrb_irep *)p->body.irep);
		}
		break;
	}
	case MRB_TT_FIBER:
		if (((struct RFiber *)obj)->cxt != mrb->root_c)
			mrb_free_context(mrb, ((struct RFiber *)obj)->cxt);
		break;
	case MRB_TT_DATA: {
		const struct RData *d = (struct RData *)obj;

		if (d->type && d->type->dfree)
			d->type->dfree(mrb, d->data);
		break;
	}
	default:
		break;
	}
}

static mrb_state *ending; // the state whose objects are all dropped now

static void drop(void *obj, size_t size, void *arg)
{
	struct RBasic *o = (struct RBasic *)obj;

	(void)arg;
	if (o->gcnext) // else it died before it was filled
		drop_object(o, (mrb_state *)(void *)o->gcnext == ending);
	clear(o, size);
}

// belongs is whether an object is one of a state.
static int belongs(const void *obj, size_t size, void *mrb)
{
	(void)size;
	return (const void *)((const struct RBasic *)obj)->gcnext == mrb;
}

static void ready(size_t n, void *arg)
{
	(void)n, (void)arg;
	drops_ready = 1;
}

// forget is called for each object when a state ends.
static int forget(void *obj, size_t size, int kind, void *mrb)
{
	if (kind == PORT_PLAIN && belongs(obj, size, mrb))
		clear((struct RBasic *)obj, size);
	return 0;
}

static void run_drops(void)
{
	drops_ready = 0;
	rt_run_finalizers(0);
}

static void collect(void)
{
	must(rt_gc(), "collection");
	run_drops();
}

static void verify_heap(void)
{
	struct rt_verify v;

	must(rt_heap_verify(&v), "verification");
	if (v.errors) {
		fprintf(stderr, "mruby: the heap is damaged: %s\n", v.first);
		abort();
	}
	notes.verified++;
}

// ---- Notes for tests ----

// make_witness makes an object that stays and refers to another one.  trace
// counts how often it is asked: once in each marking, and once more by each of
// checkmark and tracecheck.
static void make_witness(void)
{
	static struct RBasic *w; // a root

	must(rt_roots_add(&w, &w + 1, RT_ROOT_EXACT), "witness");
	w = (struct RBasic *)rt_alloc_of(PORT_PLAIN, SMALL);
	must(w ? RT_OK : RT_ENOMEM, "witness");
	w->tt = MRB_TT_UNDEF; // no object of mruby has it
	w->c = (struct RClass *)rt_alloc_of(PORT_PLAIN, SMALL);
	must(w->c ? RT_OK : RT_ENOMEM, "witness");
}

// overwrites tells whether clobberfree is on.  Words 0 and 1 of a freed object
// may be the library's.
static int overwrites(void)
{
	volatile uint64_t *p = (volatile uint64_t *)rt_alloc_noscan(64);

	must(p ? RT_OK : RT_ENOMEM, "notes");
	must(rt_free((void *)(uintptr_t)p), "notes");
	return p[4] == UINT64_C(0xdeadbeefdeadbeef);
}

// write_notes appends a line to the file that MRUBY_NOTES names.
static void write_notes(void)
{
	const char *name = getenv("MRUBY_NOTES");
	FILE *f = name ? fopen(name, "a") : NULL;
	rt_metric_sample s;
	rt_memstats m;

	if (!f)
		return;
	memset(&s, 0, sizeof s);
	s.name = "/gc/mark/helpers:objects";
	must(rt_metrics_read(&s, 1), s.name);
	must(rt_read_memstats(&m), "statistics");
	fprintf(f, "collections %llu allocations %llu asked %llu ",
		(unsigned long long)m.num_gc, (unsigned long long)m.mallocs,
		notes.asked);
	fprintf(f, "states %llu verified %llu helped %llu overwritten %d\n",
		notes.states, notes.verified, (unsigned long long)s.u64,
		overwrites());
	fclose(f);
}

static void begin_notes(void)
{
	make_witness();
	if (atexit(write_notes) != 0)
		must(RT_ENOMEM, "notes");
}

// ---- The heap ----

static void start_heap(void)
{
	rt_config c;
	rt_kind_desc d;

	rt_config_init(&c);
	c.heap_min = 1 << 20;
	c.heap_headroom = 6 << 20;
	c.gc_percent = percent;
	c.gc_threads = 0; // one thread, as mruby
	rt_config_from_env(&c);
	percent = c.gc_percent;
	must(rt_init(&c), "rt_init");
	verify = getenv("MRUBY_VERIFY") != NULL;

	rt_kind_desc_init(&d);
	d.name = "object";
	d.layout = RT_LAYOUT_TRACE;
	d.number = PORT_PLAIN;
	d.trace = trace;
	d.describe = describe;
	must(rt_kind_register(&d), d.name);
	d.name = "object with a destructor";
	d.number = PORT_DROP;
	d.flags = RT_KIND_DROP;
	d.drop = drop;
	must(rt_kind_register(&d), d.name);
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, ready, NULL), d.name);

	rt_kind_desc_init(&d);
	d.name = "values";
	d.layout = RT_LAYOUT_WORDS;
	d.number = PORT_VALUES;
	d.format = &values;
	must(rt_kind_register(&d), d.name);
	if (getenv("MRUBY_NOTES"))
		begin_notes();
}

void mrb_gc_init(mrb_state *mrb, mrb_gc *gc)
{
	static mrb_bool started;

	if (!started)
		start_heap();
	started = TRUE;
	gc->arena_capa = MRB_GC_ARENA_SIZE;
	gc->arena = (struct RBasic **)mrb_calloc(mrb, MRB_GC_ARENA_SIZE,
						 sizeof *gc->arena);
	gc->interval_ratio = 200;
	gc->step_ratio = 200;
	gc->generational = TRUE;
	must(rt_roots_add_fn(roots, mrb, "mrb_state"), "roots");
}

static void set_percent(void)
{
	must(rt_set_gc_percent(disabled ? -1 : percent, NULL), "percent");
}

static void set_disabled(mrb_state *mrb, mrb_bool on)
{
	if (mrb->gc.disabled == on)
		return;
	disabled += on ? 1 : -1;
	mrb->gc.disabled = on;
	set_percent();
}

void mrb_gc_destroy(mrb_state *mrb, mrb_gc *gc)
{
	if (verify) {
		collect();
		verify_heap();
	}
	notes.states++;
	set_disabled(mrb, FALSE);
	must(rt_roots_remove_fn(roots, mrb), "roots");
	ending = mrb;
	must(rt_drop_now(PORT_DROP, belongs, mrb), "end of a state");
	ending = NULL;
	must(rt_heap_walk(forget, mrb), "end of a state");
	mrb_free(mrb, gc->arena);
}

// ---- Memory of mruby itself ----

MRB_API void *mrb_realloc_simple(mrb_state *mrb, void *p, size_t len)
{
	return mrb->allocf(mrb, p, len, mrb->allocf_ud);
}

MRB_API void *mrb_realloc(mrb_state *mrb, void *p, size_t len)
{
	void *q = mrb_realloc_simple(mrb, p, len);

	return len ? port_must(mrb, q) : q;
}

MRB_API void *mrb_malloc(mrb_state *mrb, size_t len)
{
	return mrb_realloc(mrb, NULL, len);
}

MRB_API void *mrb_malloc_simple(mrb_state *mrb, size_t len)
{
	return mrb_realloc_simple(mrb, NULL, len);
}

MRB_API void *mrb_calloc(mrb_state *mrb, size_t nelem, size_t len)
{
	void *p;

	if (nelem == 0 || len == 0 || nelem > SIZE_MAX / len)
		return NULL;
	p = mrb_malloc(mrb, nelem * len);
	return memset(p, 0, nelem * len);
}

MRB_API void mrb_free(mrb_state *mrb, void *p)
{
	mrb->allocf(mrb, p, 0, mrb->allocf_ud);
}

// The collector finds what is on the C stack.
MRB_API void *mrb_alloca(mrb_state *mrb, size_t size)
{
	return port_must(mrb, rt_alloc(size));
}

// ---- Objects ----

static void check_type(mrb_state *mrb, enum mrb_vtype tt, struct RClass *c)
{
	enum mrb_vtype of_class;

	if (tt <= MRB_TT_FREE)
		mrb_raisef(mrb, E_TYPE_ERROR,
			   "allocation failure of %C (type %d)", c, (int)tt);
	if (!c)
		return;
	if (c->tt != MRB_TT_CLASS && c->tt != MRB_TT_SCLASS &&
	    c->tt != MRB_TT_MODULE && c->tt != MRB_TT_ENV)
		mrb_raise(mrb, E_TYPE_ERROR, "allocation failure");
	of_class = (enum mrb_vtype)MRB_INSTANCE_TT(c);
	if (of_class != MRB_TT_FALSE && of_class != tt &&
	    tt != MRB_TT_SCLASS && tt != MRB_TT_ICLASS && tt != MRB_TT_ENV)
		mrb_raisef(mrb, E_TYPE_ERROR, "allocation failure of %C", c);
}

MRB_API struct RBasic *mrb_obj_alloc(mrb_state *mrb, enum mrb_vtype tt,
				     struct RClass *c)
{
	struct RBasic *o;

	check_type(mrb, tt, c);
	if (__builtin_expect(drops_ready, 0))
		run_drops();
	switch (tt) {
	case MRB_TT_OBJECT:
	case MRB_TT_INTEGER:
	case MRB_TT_CPTR:
		o = (struct RBasic *)rt_alloc_of(PORT_PLAIN, SMALL);
		break;
	case MRB_TT_FIBER:
		o = (struct RBasic *)rt_alloc_of(PORT_DROP, SMALL);
		break;
	case MRB_TT_PROC:
	case MRB_TT_DATA:
		o = (struct RBasic *)rt_alloc_of(PORT_DROP, LARGE);
		break;
	default:
		o = (struct RBasic *)rt_alloc_of(PORT_PLAIN, LARGE);
		break;
	}
	if (__builtin_expect(!o, 0))
		mrb_raise_nomemory(mrb);
	o->c = c;
	o->gcnext = (struct RBasic *)(void *)mrb;
	o->tt = tt;
	return o;
}

MRB_API mrb_bool mrb_object_dead_p(mrb_state *mrb, struct RBasic *o)
{
	(void)mrb;
	return !rt_is_heap(o) || o->tt == MRB_TT_FREE;
}

// A protected object need not be on the C stack.
MRB_API void mrb_gc_protect(mrb_state *mrb, mrb_value v)
{
	mrb_gc *gc = &mrb->gc;

	if (mrb_immediate_p(v))
		return;
	if (gc->arena_idx >= gc->arena_capa) {
		const int capa = gc->arena_capa * 2;

		gc->arena = (struct RBasic **)mrb_realloc(
		    mrb, gc->arena, sizeof *gc->arena * capa);
		gc->arena_capa = capa;
	}
	gc->arena[gc->arena_idx++] = mrb_basic_ptr(v);
}

// Registered objects are in an array that a global variable holds.
static mrb_value registered(mrb_state *mrb)
{
	const mrb_sym name = MRB_SYM(_gc_root_);
	mrb_value table = mrb_gv_get(mrb, name);

	if (!mrb_array_p(table)) {
		table = mrb_ary_new(mrb);
		mrb_gv_set(mrb, name, table);
	}
	return table;
}

MRB_API void mrb_gc_register(mrb_state *mrb, mrb_value v)
{
	if (!mrb_immediate_p(v))
		mrb_ary_push(mrb, registered(mrb), v);
}

MRB_API void mrb_gc_unregister(mrb_state *mrb, mrb_value v)
{
	const mrb_value table = registered(mrb);
	mrb_int i;

	for (i = 0; !mrb_immediate_p(v) && i < RARRAY_LEN(table); i++) {
		if (mrb_ptr(v) == mrb_ptr(RARRAY_PTR(table)[i])) {
			mrb_ary_set(mrb, table, i,
				    RARRAY_PTR(table)[RARRAY_LEN(table) - 1]);
			mrb_ary_pop(mrb, table);
			return;
		}
	}
}

// ---- Collections ----

MRB_API void mrb_full_gc(mrb_state *mrb)
{
	if (mrb->c && !mrb->gc.disabled && !mrb->gc.iterating)
		collect();
	if (verify)
		verify_heap();
}

MRB_API void mrb_garbage_collect(mrb_state *mrb)
{
	mrb_full_gc(mrb);
}

MRB_API void mrb_incremental_gc(mrb_state *mrb)
{
	(void)mrb;
	rt_safepoint();
}

// mrb_gc_mark is for callbacks of the collector.
MRB_API void mrb_gc_mark(mrb_state *mrb, struct RBasic *o)
{
	rt_tracer *t = rt_tracer_self();

	(void)mrb;
	if (t)
		rt_trace_ptr(t, o);
}

// rtheap.h has macros of these names for mruby's own files.
#undef mrb_write_barrier
#undef mrb_field_write_barrier

MRB_API void mrb_write_barrier(mrb_state *mrb, struct RBasic *o)
{
	(void)mrb, (void)o;
}

MRB_API void mrb_field_write_barrier(mrb_state *mrb, struct RBasic *o,
				     struct RBasic *value)
{
	(void)mrb, (void)o, (void)value;
}

// each calls a function of mruby for the objects of a kind, until one returns
// MRB_EACH_OBJ_BREAK.  It may allocate, and may leave by longjmp.
static int each(mrb_state *mrb, int kind, mrb_each_object_callback *fn,
		void *data)
{
	size_t i, n;
	void **objs =
	    (void **)port_must(mrb, rt_heap_list(kind, belongs, mrb, &n));

	for (i = 0; i < n; i++) {
		if (fn(mrb, (struct RBasic *)objs[i], data) ==
		    MRB_EACH_OBJ_BREAK)
			return MRB_EACH_OBJ_BREAK;
	}
	rt_keep_alive(objs);
	return MRB_EACH_OBJ_OK;
}

void mrb_objspace_each_objects(mrb_state *mrb, mrb_each_object_callback *fn,
			       void *data)
{
	mrb_full_gc(mrb);
	if (each(mrb, PORT_PLAIN, fn, data) == MRB_EACH_OBJ_OK)
		each(mrb, PORT_DROP, fn, data);
}

size_t mrb_objspace_page_slot_size(void)
{
	return LARGE;
}

// ---- The module GC ----

static mrb_value gc_start(mrb_state *mrb, mrb_value self)
{
	(void)self;
	mrb_full_gc(mrb);
	return mrb_nil_value();
}

static mrb_value gc_enable(mrb_state *mrb, mrb_value self)
{
	const mrb_bool old = mrb->gc.disabled;

	(void)self;
	set_disabled(mrb, FALSE);
	return mrb_bool_value(old);
}

static mrb_value gc_disable(mrb_state *mrb, mrb_value self)
{
	const mrb_bool old = mrb->gc.disabled;

	(void)self;
	set_disabled(mrb, TRUE);
	return mrb_bool_value(old);
}

static mrb_value gc_interval_ratio(mrb_state *mrb, mrb_value self)
{
	(void)self;
	return mrb_int_value(mrb, mrb->gc.interval_ratio);
}

static mrb_value gc_set_interval_ratio(mrb_state *mrb, mrb_value self)
{
	mrb_int ratio;

	(void)self;
	mrb_get_args(mrb, "i", &ratio);
	mrb->gc.interval_ratio = (int)ratio;
	percent = ratio < 25 ? 25 : (int)ratio;
	set_percent();
	return mrb_nil_value();
}

static mrb_value gc_step_ratio(mrb_state *mrb, mrb_value self)
{
	(void)self;
	return mrb_int_value(mrb, mrb->gc.step_ratio);
}

static mrb_value gc_set_step_ratio(mrb_state *mrb, mrb_value self)
{
	mrb_int ratio;

	(void)self;
	mrb_get_args(mrb, "i", &ratio);
	mrb->gc.step_ratio = (int)ratio;
	return mrb_nil_value();
}

static mrb_value gc_generational(mrb_state *mrb, mrb_value self)
{
	(void)self;
	return mrb_bool_value(mrb->gc.generational);
}

static mrb_value gc_set_generational(mrb_state *mrb, mrb_value self)
{
	mrb_bool on;

	(void)self;
	mrb_get_args(mrb, "b", &on);
	if (mrb->gc.generational != on && mrb->gc.disabled)
		mrb_raise(mrb, E_RUNTIME_ERROR,
			  "generational mode changed when GC disabled");
	mrb->gc.generational = on;
	return mrb_bool_value(on);
}

void mrb_init_gc(mrb_state *mrb)
{
	static const struct {
		const char *name;
		mrb_func_t fn;
		mrb_aspec args;
	} methods[] = {
	    {"start", gc_start, MRB_ARGS_NONE()},
	    {"enable", gc_enable, MRB_ARGS_NONE()},
	    {"disable", gc_disable, MRB_ARGS_NONE()},
	    {"interval_ratio", gc_interval_ratio, MRB_ARGS_NONE()},
	    {"interval_ratio=", gc_set_interval_ratio, MRB_ARGS_REQ(1)},
	    {"step_ratio", gc_step_ratio, MRB_ARGS_NONE()},
	    {"step_ratio=", gc_set_step_ratio, MRB_ARGS_REQ(1)},
	    {"generational_mode", gc_generational, MRB_ARGS_NONE()},
	    {"generational_mode=", gc_set_generational, MRB_ARGS_REQ(1)},
	};
	struct RClass *gc = mrb_define_module(mrb, "GC");
	size_t i;

	for (i = 0; i < sizeof methods / sizeof methods[0]; i++)
		mrb_define_class_method(mrb, gc, methods[i].name, methods[i].fn,
					methods[i].args);
}
