// Checking an rt_config, completing it, and setting it from the environment.
#include "runtime/os/settings.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/options.h"

rt_config settings_present;

static const rt_config defaults = {
    .struct_size = sizeof(rt_config),
    .max_heap = 0,
    .heap_min = 0,
    .heap_headroom = 20 << 20,
    .memory_limit = INT64_MAX,
    .gc_percent = 100,
    .max_procs = 0,
    .gc_threads = -1,
    .double_check = RT_CHECK_OFF,
    .stop_signal = 0,
    .stop_grace_us = 100,
    .past_end = 1,
    .huge_pages = 0,
    .populate = 2,
    .gc_cpu_limit = 50,
    .cgroup = 1,
    .scavenge = 1,
    .idle_s = 5,
    .gc_period_s = 120,
    .sweep = 1,
};

static_assert(sizeof(size_t) == 8 && sizeof(int) == 4, "field_width");
static_assert(sizeof(rt_config) == 136, "a new field goes into fields, too");
static_assert(offsetof(rt_config, guard_small) + 2 ==
		      offsetof(rt_config, stack_format) &&
		  offsetof(rt_config, stack_format) + sizeof(void *) ==
		      offsetof(rt_config, tracecheck) &&
		  offsetof(rt_config, spare) + sizeof settings_present.spare ==
		      offsetof(rt_config, gc_affinity) &&
		  offsetof(rt_config, gc_affinity_size) + sizeof(size_t) ==
		      offsetof(rt_config, gc_thread_start) &&
		  offsetof(rt_config, gc_thread_arg) + sizeof(void *) ==
		      sizeof(rt_config),
	      "no byte is unknown that could be set");

enum {
	HEAP_MIN = 4 << 20, // Go's heapMinimum
};

enum field_type {
	FIELD_BYTES, // size_t
	FIELD_I64,
	FIELD_INT,
	FIELD_U32,
	FIELD_U16,
	FIELD_U8,
};

// A field of rt_config that is a number.  Every allowed value fits in int64_t.
// A size_t that does not fit reads as negative, which no field of bytes allows.
struct field {
	const char *name;
	size_t offset;
	enum field_type type;
	bool in_rtdebug; // may be an item of RTDEBUG
	int64_t min, max;
};

#define FIELD(name, type, in_rtdebug, min, max)                                \
	{                                                                      \
#name, offsetof(rt_config, name), type, in_rtdebug, min, max   \
	}

static const struct field fields[] = {
    FIELD(max_heap, FIELD_BYTES, true, 0, SETTINGS_MAX_HEAP),
    FIELD(heap_min, FIELD_BYTES, true, 0, SETTINGS_MAX_HEAP),
    FIELD(heap_headroom, FIELD_BYTES, true, 0, SETTINGS_MAX_HEAP),
    FIELD(memory_limit, FIELD_I64, false, 0, INT64_MAX),
    FIELD(gc_percent, FIELD_INT, false, INT_MIN, INT_MAX),
    FIELD(max_procs, FIELD_INT, true, 0, SETTINGS_MAX_PROCS),
    FIELD(gc_threads, FIELD_INT, true, -1, SETTINGS_MAX_PROCS),
    FIELD(double_check, FIELD_INT, true, RT_CHECK_OFF, RT_CHECK_REPORT),
    FIELD(stop_signal, FIELD_INT, true, -1, INT_MAX),
    FIELD(stop_grace_us, FIELD_U32, true, 0, UINT32_MAX),
    FIELD(past_end, FIELD_U8, true, 0, 1),
    FIELD(align8, FIELD_U8, true, 0, 1),
    FIELD(concurrent, FIELD_U8, false, 0, 0),
    FIELD(no_attach, FIELD_U8, false, 0, 1),
    FIELD(huge_pages, FIELD_U8, true, 0, 1),
    FIELD(populate, FIELD_U8, true, 0, 2),
    FIELD(checkmark, FIELD_U8, true, 0, 1),
    FIELD(clobberfree, FIELD_U8, true, 0, 1),
    FIELD(gcstress, FIELD_U32, true, 0, UINT32_MAX),
    FIELD(poison, FIELD_U8, true, 0, 1),
    FIELD(guard_large, FIELD_U8, true, 0, 1),
    FIELD(guard_small, FIELD_U16, true, 0, UINT16_MAX),
    FIELD(tracecheck, FIELD_U8, true, 0, 1),
    FIELD(gc_cpu_limit, FIELD_U8, true, 1, 100),
    FIELD(cgroup, FIELD_U8, true, 0, 2),
    FIELD(gctrace, FIELD_U8, true, 0, 2),
    FIELD(scavtrace, FIELD_U8, true, 0, 1),
    FIELD(gcpacertrace, FIELD_U8, true, 0, 1),
    FIELD(scavenge, FIELD_U8, true, 0, 1),
    FIELD(idle_s, FIELD_U8, true, 0, UINT8_MAX),
    FIELD(sweep, FIELD_U8, true, 0, 2),
    FIELD(gc_period_s, FIELD_U8, true, 0, UINT8_MAX),
    FIELD(gc_affinity_size, FIELD_BYTES, false, 0, OSCALL_MASK_BYTES),
};

static size_t field_width(const struct field *f)
{
	switch (f->type) {
	case FIELD_BYTES:
	case FIELD_I64:
		return 8;
	case FIELD_INT:
	case FIELD_U32:
		return 4;
	case FIELD_U16:
		return 2;
	case FIELD_U8:
		break;
	}
	return 1;
}

// field_exists tells whether the host's struct, which may be shorter than ours,
// has the field.
static bool field_exists(const struct field *f, const rt_config *c)
{
	return f->offset + field_width(f) <= c->struct_size;
}

static int64_t field_get(const struct field *f, const rt_config *c)
{
	const void *at = (const char *)c + f->offset;

	switch (f->type) {
	case FIELD_BYTES:
		return (int64_t)(*(const size_t *)at);
	case FIELD_I64:
		return *(const int64_t *)at;
	case FIELD_INT:
		return *(const int *)at;
	case FIELD_U32:
		return *(const uint32_t *)at;
	case FIELD_U16:
		return *(const uint16_t *)at;
	case FIELD_U8:
		break;
	}
	return *(const uint8_t *)at;
}

static void field_put(const struct field *f, rt_config *c, int64_t v)
{
	void *at = (char *)c + f->offset;

	switch (f->type) {
	case FIELD_BYTES:
		*(size_t *)at = (size_t)v;
		return;
	case FIELD_I64:
		*(int64_t *)at = v;
		return;
	case FIELD_INT:
		*(int *)at = (int)v;
		return;
	case FIELD_U32:
		*(uint32_t *)at = (uint32_t)v;
		return;
	case FIELD_U16:
		*(uint16_t *)at = (uint16_t)v;
		return;
	case FIELD_U8:
		*(uint8_t *)at = (uint8_t)v;
	}
}

// signal_usable tells whether a signal can be caught and is raised by no fault,
// no abort and no system call filter.  The real-time signals below SIGRTMIN
// belong to libc.  Returns true for 0 and -1, which stop_signal may be though
// they are no signals.
static bool signal_usable(int64_t signal)
{
	switch (signal) {
	case SIGKILL:
	case SIGSTOP:
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
	case SIGABRT:
		return false;
	default:
		return signal <= SIGSYS ||
		       (signal >= SIGRTMIN && signal <= SIGRTMAX);
	}
}

static bool field_allows(const struct field *f, int64_t v)
{
	if (v < f->min || v > f->max)
		return false;
	return f->offset != offsetof(rt_config, stop_signal) ||
	       signal_usable(v);
}

bool settings_known(const void *s, size_t size, size_t least, size_t known)
{
	const char *bytes = s;

	if (size < least || size > SETTINGS_MAX_STRUCT)
		return false;
	for (size_t i = known; i < size; i++) {
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

bool settings_initialised(const rt_config *c)
{
	size_t to = base_min(c->struct_size, offsetof(rt_config, gc_affinity));

	return settings_known(c, c->struct_size, SETTINGS_MIN_STRUCT,
			      sizeof *c) &&
	       settings_known(c, to, SETTINGS_MIN_STRUCT,
			      offsetof(rt_config, spare));
}

void settings_default(rt_config *c, size_t size)
{
	memset(c, 0, size);
	memcpy(c, &defaults, base_min(size, sizeof defaults));
	c->struct_size = size;
}

// The fields that are no numbers, but pointers.
static const size_t pointers[] = {
    offsetof(rt_config, stack_format),
    offsetof(rt_config, gc_affinity),
    offsetof(rt_config, gc_thread_start),
    offsetof(rt_config, gc_thread_arg),
};

static_assert(sizeof settings_present.gc_thread_start == sizeof(void *),
	      "a pointer");

// copy_pointers copies the pointers that the host's struct has.
static void copy_pointers(const rt_config *in, rt_config *out)
{
	for (size_t i = 0; i < RT_ARRAY_LEN(pointers); i++) {
		size_t at = pointers[i];

		if (at + sizeof(void *) <= in->struct_size)
			memcpy((char *)out + at, (const char *)in + at,
			       sizeof(void *));
	}
}

// copy_known overwrites the defaults with the fields that the host's struct
// has.  Returns false if the struct is not initialised, or if a field has a
// value that is not allowed.
static bool copy_known(const rt_config *in, rt_config *out)
{
	if (!settings_initialised(in))
		return false;
	for (size_t i = 0; i < RT_ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];

		if (!field_exists(f, in))
			continue;
		if (!field_allows(f, field_get(f, in)))
			return false;
		field_put(f, out, field_get(f, in));
	}
	copy_pointers(in, out);
	return true;
}

// mask_count returns the number of processors in a mask.
static int mask_count(const void *mask, size_t bytes)
{
	const uint8_t *byte = mask;
	int n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += __builtin_popcount(byte[i]);
	return n;
}

// resolve_affinity bounds the number of threads by that of the processors they
// may use.  Returns false if there is a mask without a processor, or a size
// without a mask.
static bool resolve_affinity(rt_config *c)
{
	int n;

	if (!c->gc_affinity)
		return c->gc_affinity_size == 0;
	n = mask_count(c->gc_affinity, c->gc_affinity_size);
	if (c->gc_threads > n)
		c->gc_threads = n;
	return n != 0;
}

static int default_procs(void)
{
	uint64_t n = base_max(oscall_nprocs(), 1); // 0: refused

	return (int)base_min(n, SETTINGS_MAX_PROCS);
}

size_t settings_heap_min(size_t bytes)
{
	return bytes == 0 ? HEAP_MIN : bytes;
}

int settings_resolve(const rt_config *in, rt_config *out)
{
	*out = defaults;
	if (in && !copy_known(in, out))
		return RT_EINVAL;
	out->heap_min = settings_heap_min(out->heap_min);
	if (out->gc_percent < 0)
		out->gc_percent = -1;
	if (out->max_procs == 0)
		out->max_procs = default_procs();
	if (out->gc_threads < 0)
		out->gc_threads = out->max_procs;
	if (out->stop_signal == 0)
		out->stop_signal = SIGURG;
	return resolve_affinity(out) ? RT_OK : RT_EINVAL;
}

void settings_begin(const rt_config *c)
{
	settings_present = *c;
	settings_present.gc_affinity = NULL;
	settings_present.gc_affinity_size = 0;
	settings_present.stack_format = NULL;
}

void settings_end(void)
{
	settings_present = (rt_config){0};
}

// ---- the environment ----

static const struct field *field_find(struct options_text name)
{
	for (size_t i = 0; i < RT_ARRAY_LEN(fields); i++) {
		if (options_is(name, fields[i].name))
			return &fields[i];
	}
	return NULL;
}

// set_field sets a field.  Returns false if f is NULL, the host's struct does
// not have the field, or the value is not allowed.
static bool set_field(rt_config *c, const struct field *f, int64_t v)
{
	if (!f || !field_exists(f, c) || !field_allows(f, v))
		return false;
	field_put(f, c, v);
	return true;
}

static bool set_named(rt_config *c, const char *name, int64_t v)
{
	struct options_text text;

	return options_text_of(name, &text) &&
	       set_field(c, field_find(text), v);
}

// read_variable reads one variable; an unset one reads as empty.  Returns false
// if its text is longer than OPTIONS_MAX_TEXT.
static bool read_variable(const char *name, struct options_text *value)
{
	const char *s = oscall_getenv(name);

	return options_text_of(s ? s : "", value);
}

static bool take_rtgc(rt_config *c)
{
	struct options_text value;
	int percent;

	if (!read_variable("RTGC", &value))
		return false;
	if (value.len == 0)
		return true;
	return options_percent(value, &percent) &&
	       set_named(c, "gc_percent", percent);
}

static bool take_rtmemlimit(rt_config *c)
{
	struct options_text value;
	uint64_t bytes = INT64_MAX; // off

	if (!read_variable("RTMEMLIMIT", &value))
		return false;
	if (value.len == 0)
		return true;
	return (options_is(value, "off") || options_size(value, &bytes)) &&
	       set_named(c, "memory_limit", (int64_t)bytes);
}

static bool take_item(rt_config *c, struct options_item item)
{
	const struct field *f = field_find(item.name);
	uint64_t bytes;
	int64_t v;

	if (!f || !f->in_rtdebug)
		return false;
	if (f->type == FIELD_BYTES)
		return options_size(item.value, &bytes) &&
		       set_field(c, f, (int64_t)bytes);
	return options_integer(item.value, &v) && set_field(c, f, v);
}

static bool take_rtdebug(rt_config *c)
{
	struct options_text rest;
	struct options_item item;
	bool all = true;

	if (!read_variable("RTDEBUG", &rest))
		return false;
	while (options_next(&rest, &item))
		all &= take_item(c, item);
	return all;
}

bool settings_from_env(rt_config *c)
{
	bool all = true;

	all &= take_rtgc(c);
	all &= take_rtmemlimit(c);
	all &= take_rtdebug(c);
	return all;
}
