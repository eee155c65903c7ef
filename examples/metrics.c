// metrics.c - all metrics by name, and what the last collections did.
#include <rt/rt.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

// Statistics that contradict each other are reported, and do no harm.
static void warned(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "%s\n", text);
}

static void print_metric(const rt_metric_desc *d)
{
	rt_metric_sample s;
	uint64_t n = 0;

	memset(&s, 0, sizeof s);
	s.name = d->name;
	s.ncounts = d->ncounts;
	s.counts = (uint64_t *)calloc(d->ncounts + 1, sizeof *s.counts);
	must(s.counts ? RT_OK : RT_ENOMEM);
	must(rt_metrics_read(&s, 1));
	for (size_t i = 0; i < d->ncounts; i++)
		n += s.counts[i];
	if (s.result == RT_METRIC_HISTOGRAM)
		printf("%s %" PRIu64 " values\n", d->name, n);
	else if (s.result == RT_METRIC_F64)
		printf("%s %g\n", d->name, s.f64);
	else
		printf("%s %" PRIu64 "\n", d->name, s.u64);
	free(s.counts);
}

static void print_pauses(void)
{
	uint64_t words[RT_GCSTATS_WORDS];
	size_t used;

	must(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used));
	for (size_t i = 0; i < (used - 3) / 2; i++)
		printf("pause %zu: %" PRIu64 " ns\n", i, words[i]);
}

// print_cycles prints the records of collections, oldest first.
static void print_cycles(void)
{
	rt_cycle newest, c;

	must(rt_read_cycle(0, &newest));
	for (uint64_t n = 1; n <= newest.number; n++) {
		if (rt_read_cycle(n, &c) != RT_OK)
			continue; // it is too old
		printf("cycle %" PRIu64 ": %" PRIu64 " of %" PRIu64
		       " bytes live, marked in %" PRIu64 " ns\n",
		       c.number, c.heap_live, c.heap_start, c.mark_ns);
	}
}

int main(void)
{
	rt_memstats m;

	must(rt_init(NULL));
	must(rt_set_warn_handler(warned, NULL));
	must(rt_set_memstats_double_check(RT_CHECK_REPORT));
	for (int i = 0; i < 3; i++)
		must(rt_gc());
	must(rt_read_memstats(&m));
	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metric_desc d;

		must(rt_metrics_describe(i, &d));
		print_metric(&d);
	}
	print_pauses();
	print_cycles();
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
