// The state of each unit, and the calls that change it.
#include "runtime/pages/hugepages.h"

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"

enum state {
	SMALL,
	WANTED,
	HUGE,
	STATE_MASK = 3,
	STATE_BITS = 2,
};

// Parts of address space that are advised unit by unit.
enum range { HEAP, RANGES = HUGEPAGES_RANGES };
static_assert(RANGES * STATE_BITS <= 8, "a byte holds a state for each range");

struct hugepages hugepages = {.lock = RT_MUTEX_INIT(LOCKRANK_HUGEPAGES)};

// ---- beginning and end ----

static void range_init(enum range r, char *base, uint32_t chunks, size_t unit)
{
	hugepages.range[r] = (struct hugepages_range){
	    .base = base, .chunks = chunks, .unit = unit};
}

bool hugepages_init(void)
{
	hugepages.nchunks = hugepages.cursor = 0;
	atomic_u32_store_relaxed(&hugepages.busy, 0);
	range_init(HEAP, (char *)arena.base, 1, RT_CHUNK_SIZE);
	for (unsigned i = 0; i < ARENA_MARKED_TABLES; i++) {
		size_t bytes = arena_table_bytes(i, 1);

		range_init((enum range)(HEAP + 1 + i), arena.table[i].base,
			   (uint32_t)(SYSMEM_HUGE_PAGE / bytes),
			   SYSMEM_HUGE_PAGE);
	}
	return systable_init(&hugepages.states,
			     arena.reserved >> RT_CHUNK_SHIFT,
			     &gauges.gc_misc_sys, "huge pages");
}

void hugepages_fini(void)
{
	for (unsigned r = 0; r < RANGES; r++) {
		uint32_t nstretches = hugepages.range[r].nstretches;

		sysmem_count_mappings(-2 * (int64_t)nstretches);
	}
	systable_fini(&hugepages.states);
}

bool hugepages_reserve(uint32_t nchunks)
{
	return systable_grow(&hugepages.states, nchunks);
}

void hugepages_fork_lock(void)
{
	mutex_lock(&hugepages.lock);
}

void hugepages_fork_unlock(void)
{
	mutex_unlock(&hugepages.lock);
}

void hugepages_fork_child(void)
{
	atomic_u32_store_relaxed(&hugepages.busy, 0);
}

// ---- states ----

static uint8_t *state_byte(enum range r, uint32_t unit)
{
	return (uint8_t *)hugepages.states.base +
	       (size_t)unit * hugepages.range[r].chunks;
}

static enum state state_get(enum range r, uint32_t unit)
{
	return (enum state)(*state_byte(r, unit) >> (r * STATE_BITS) &
			    STATE_MASK);
}

static void state_set(enum range r, uint32_t unit, enum state state)
{
	uint8_t *byte = state_byte(r, unit);
	enum state old = state_get(r, unit);

	RT_ASSERT(mutex_held(&hugepages.lock));
	if (old == WANTED)
		hugepages.range[r].nwanted--;
	if (state == WANTED)
		hugepages.range[r].nwanted++;
	*byte = (uint8_t)((*byte & ~(STATE_MASK << (r * STATE_BITS))) |
			  (unsigned)state << (r * STATE_BITS));
}

// limit_of returns the number of units that have a state.
static uint32_t limit_of(enum range r)
{
	return hugepages.nchunks / hugepages.range[r].chunks;
}

static bool is_huge(enum range r, uint32_t unit)
{
	return unit < limit_of(r) && state_get(r, unit) == HUGE;
}

// neighbours returns how many of a unit's two neighbours are HUGE.
static unsigned neighbours(enum range r, uint32_t unit)
{
	return (unit > 0 && is_huge(r, unit - 1)) + is_huge(r, unit + 1);
}

// may_add tells whether there may be one more stretch.
static bool may_add(enum range r)
{
	uint32_t gib = hugepages.nchunks >> (30 - RT_CHUNK_SHIFT);

	return hugepages.range[r].nstretches < HUGEPAGES_STRETCHES + gib &&
	       !sysmem_many_mappings();
}

static void count_stretches(enum range r, int more)
{
	RT_ASSERT(mutex_held(&hugepages.lock));
	hugepages.range[r].nstretches += (uint32_t)more;
	sysmem_count_mappings(2 * more);
}

static char *address(enum range r, uint32_t unit)
{
	return hugepages.range[r].base + unit * hugepages.range[r].unit;
}

// ---- invariants that a change of one unit checks ----

static const char *check_place(const struct hugepages_range *range)
{
	return !range->base || range->chunks == 0 || range->unit == 0
		   ? "range of huge pages has no place or no unit"
		   : NULL;
}

// check_fields checks all but the ranges.
static const char *check_fields(const struct hugepages *h)
{
	const char *wrong = mutex_check(&h->lock);

	if (!wrong)
		wrong = systable_check(&h->states);
	if (!wrong && h->nchunks > systable_ready(&h->states))
		wrong = "huge pages have more states than their table";
	if (!wrong && settings()->huge_pages == 0 && h->nchunks != 0)
		wrong = "huge pages have states though they are off";
	if (!wrong && h->cursor > h->nchunks)
		wrong = "cursor of huge pages is beyond the heap";
	if (!wrong && atomic_u32_load_relaxed(&h->busy) > 1)
		wrong = "huge pages are provided by two threads";
	return wrong;
}

// state_in returns the two bits of a unit, which may be no state.
static unsigned state_in(const struct hugepages *h, enum range r, uint32_t unit)
{
	const uint8_t *bytes = (const uint8_t *)h->states.base;

	return bytes[(size_t)unit * h->range[r].chunks] >> (r * STATE_BITS) &
	       STATE_MASK;
}

// check_unit checks a unit and the numbers of its range.
static const char *check_unit(const struct hugepages *h, enum range r,
			      uint32_t unit)
{
	const struct hugepages_range *range = &h->range[r];
	const char *wrong = check_place(range);
	uint32_t nunits;

	if (wrong)
		return wrong;
	nunits = h->nchunks / range->chunks;
	if (unit >= nunits)
		return "unit of huge pages is beyond the heap";
	if (state_in(h, r, unit) > HUGE)
		return "unit of huge pages has an unknown state";
	if (range->nwanted > nunits ||
	    (range->nwanted == 0 && state_in(h, r, unit) == WANTED))
		return "nwanted is not the number of WANTED units";
	if (range->nstretches > nunits ||
	    (range->nstretches == 0 && state_in(h, r, unit) == HUGE))
		return "nstretches is not the number of stretches of HUGE "
		       "units";
	return NULL;
}

// ---- wanting ----

// choose_tables makes units of tables WANTED.  It looks at those whose last
// chunk is the one just below `chunk`, and takes those with no SMALL chunk.
// full is the number of chunks in a row, just below `chunk`, that are not
// SMALL.
static void choose_tables(uint32_t chunk, uint32_t full)
{
	for (unsigned i = 1; i < RANGES; i++) {
		enum range r = (enum range)i;
		uint32_t chunks = hugepages.range[r].chunks;

		if (chunk % chunks == 0 && full >= chunks &&
		    state_get(r, chunk / chunks - 1) == SMALL)
			state_set(r, chunk / chunks - 1, WANTED);
	}
}

bool hugepages_choose(const struct pagealloc *pa)
{
	uint32_t full = 0, nwanted = 0;

	if (settings()->huge_pages == 0)
		return false;
	mutex_lock(&hugepages.lock);
	hugepages.nchunks = pa->nchunks;
	hugepages.cursor = 0;
	for (uint32_t c = 0; c < pa->nchunks; c++) {
		if (state_get(HEAP, c) == SMALL &&
		    scavindex_in_use(&pa->scav, c) >= SCAVINDEX_HIGH)
			state_set(HEAP, c, WANTED);
		full = state_get(HEAP, c) == SMALL ? 0 : full + 1;
		choose_tables(c + 1, full);
	}
	for (unsigned r = 0; r < RANGES; r++)
		nwanted += hugepages.range[r].nwanted;
	RT_CHECK(hugepages_check(&hugepages));
	mutex_unlock(&hugepages.lock);
	return nwanted != 0;
}

// ---- providing ----

// advise makes a WANTED unit HUGE.  If the unit would be one stretch too many,
// or if the system refuses, it makes the unit SMALL and returns false.  After a
// refusal the system is not asked again, for any unit, before the next
// collection.
static bool advise(enum range r, uint32_t unit)
{
	unsigned n = neighbours(r, unit);
	bool ok = n != 0 || may_add(r);

	if (ok &&
	    !sysmem_huge_pages(address(r, unit), hugepages.range[r].unit)) {
		hugepages.cursor = hugepages.nchunks;
		ok = false;
	}
	if (!ok) {
		state_set(r, unit, SMALL);
		return false;
	}
	state_set(r, unit, HUGE);
	count_stretches(r, 1 - (int)n);
	return true;
}

// next_wanted moves the cursor to the next chunk at which a WANTED unit begins
// and returns the range of that unit.  Returns RANGES if there is none.
static enum range next_wanted(void)
{
	for (; hugepages.cursor < hugepages.nchunks; hugepages.cursor++)
		for (unsigned i = 0; i < RANGES; i++) {
			enum range r = (enum range)i;
			uint32_t chunks = hugepages.range[r].chunks;

			if (hugepages.cursor % chunks == 0 &&
			    hugepages.cursor / chunks < limit_of(r) &&
			    state_get(r, hugepages.cursor / chunks) == WANTED)
				return r;
		}
	return RANGES;
}

// provide_next makes the next WANTED unit HUGE, by advice only.  It sets *unit
// and returns the range of the unit.  Returns RANGES if there is none, or if
// the system refuses.
static enum range provide_next(uint32_t *unit)
{
	enum range r;

	mutex_lock(&hugepages.lock);
	do {
		r = next_wanted();
		if (r == RANGES)
			break;
		*unit = hugepages.cursor / hugepages.range[r].chunks;
	} while (!advise(r, *unit));
	RT_CHECK(r == RANGES ? NULL : check_unit(&hugepages, r, *unit));
	mutex_unlock(&hugepages.lock);
	return r;
}

// A unit may be withdrawn while the system is collapsing it.  The system is
// told to use small pages before memory of the unit is released, so the release
// takes what collapsing brought in.
bool hugepages_provide(bool collapse)
{
	uint32_t unit = 0;
	enum range r;

	if (!atomic_u32_cas_acquire(&hugepages.busy, 0, 1))
		return false;
	r = provide_next(&unit);
	if (r != RANGES && collapse)
		sysmem_collapse(address(r, unit), hugepages.range[r].unit);
	// Pairs with the acquire above, so one thread at a time provides.
	atomic_u32_store_release(&hugepages.busy, 0);
	return r != RANGES;
}

// ---- withdrawing ----

struct part {
	uint32_t lo, hi; // units
};

// shorter_side returns the part of a stretch from a unit to the nearer end.
static struct part shorter_side(enum range r, uint32_t unit)
{
	struct part left = {unit, unit + 1}, right = {unit, unit + 1};

	while (left.lo > 0 && is_huge(r, left.lo - 1))
		left.lo--;
	while (is_huge(r, right.hi))
		right.hi++;
	return unit - left.lo < right.hi - unit ? left : right;
}

static bool make_small(enum range r, struct part part)
{
	uint32_t n = part.hi - part.lo;

	return sysmem_small_pages(address(r, part.lo),
				  n * hugepages.range[r].unit);
}

// withdraw makes a HUGE unit SMALL.  The shorter side of its stretch becomes
// SMALL with it if there may be no more stretches, or the system refuses to
// split this one.
static void withdraw(enum range r, uint32_t unit)
{
	struct part part = {unit, unit + 1};
	bool splits = neighbours(r, unit) == 2;
	unsigned n;

	if (splits && !may_add(r))
		part = shorter_side(r, unit);
	if (!make_small(r, part)) {
		part = shorter_side(r, unit);
		if (!splits || !make_small(r, part))
			return;
	}
	n = (part.lo > 0 && is_huge(r, part.lo - 1)) + is_huge(r, part.hi);
	count_stretches(r, (int)n - 1);
	for (uint32_t i = part.lo; i < part.hi; i++)
		state_set(r, i, SMALL);
}

static void withdraw_at(enum range r, uint32_t chunk)
{
	uint32_t unit = chunk / hugepages.range[r].chunks;

	if (unit >= limit_of(r))
		return;
	if (state_get(r, unit) == HUGE)
		withdraw(r, unit);
	else
		state_set(r, unit, SMALL);
	RT_CHECK(check_unit(&hugepages, r, unit));
}

void hugepages_withdraw(uint32_t chunk)
{
	mutex_lock(&hugepages.lock);
	withdraw_at(HEAP, chunk);
	RT_CHECK(check_fields(&hugepages));
	mutex_unlock(&hugepages.lock);
}

void hugepages_withdraw_tables(uint32_t chunk)
{
	mutex_lock(&hugepages.lock);
	for (unsigned r = HEAP + 1; r < RANGES; r++)
		withdraw_at((enum range)r, chunk);
	mutex_unlock(&hugepages.lock);
}

// ---- invariants ----

// check_range counts the units of a range that are WANTED, and the stretches.
static const char *check_range(const struct hugepages *h, enum range r)
{
	const struct hugepages_range *range = &h->range[r];
	const char *wrong = check_place(range);
	uint32_t nwanted = 0, nstretches = 0;
	unsigned before = SMALL;

	if (wrong)
		return wrong;
	for (uint32_t unit = 0; unit < h->nchunks / range->chunks; unit++) {
		unsigned state = state_in(h, r, unit);

		if (state > HUGE)
			return "unit of huge pages has an unknown state";
		nwanted += state == WANTED;
		nstretches += state == HUGE && before != HUGE;
		before = state;
	}
	if (nwanted != range->nwanted)
		return "nwanted is not the number of WANTED units";
	if (nstretches != range->nstretches)
		return "nstretches is not the number of stretches of HUGE "
		       "units";
	return NULL;
}

const char *hugepages_check(const struct hugepages *h)
{
	const char *wrong = check_fields(h);

	for (unsigned r = 0; r < RANGES && !wrong; r++)
		wrong = check_range(h, (enum range)r);
	return wrong;
}
