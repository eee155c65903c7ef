// small.c - what the background thread and the records of collections take in a
// small program.
//
// usage: small COLLECTIONS
//
// The program allocates one object, reads what is resident, and collects so
// many times.  With sweep 2 the first collection makes the background thread,
// with sweep 0 there is none.  After 256 collections all records are in use.
//
// The value is by how many KiB the resident memory has grown in all of them.
// The figures are the growth in the first collection, and in the others.  They
// come from smaps_rollup, because the system counts what VmRSS shows in steps
// of many pages.  The peak shows what a small program needs.
//
// Good: at most 200 KiB.
#include "watch.h"

// resident_kib returns what is resident, to the page.
static double resident_kib(void)
{
	double kib = 0;
	char line[128];
	FILE *f = fopen("/proc/self/smaps_rollup", "r");

	if (!f)
		peer_die("no /proc/self/smaps_rollup");
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "Rss: %lf", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {2, 100000};
	uint64_t n = peer_number(argc, argv, 1, bounds);
	double before, first, all;
	struct peer_time t = {0};

	heap_begin();
	peer_keep(peer_alloc(64));
	resident_kib(); // the first call takes memory of its own
	before = resident_kib();
	peer_start(&t);
	heap_collect();
	first = resident_kib();
	for (uint64_t i = 1; i < n; i++)
		heap_collect();
	all = resident_kib();
	peer_stop(&t);
	peer_figure("first_KiB", first - before);
	peer_figure("others_KiB", all - first);
	peer_report(all - before, "KiB", &t, watch_cycle_count());
	return 0;
}
