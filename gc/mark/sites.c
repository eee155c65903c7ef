// A table of sites, in the order in which they were first found.
#include "gc/mark/sites.h"

#include <string.h>

#include "runtime/os/throw.h"
#include "runtime/os/sysmem.h"
#include "runtime/world/stw.h"

enum { ROOM_MIN = 64 };

struct sites sites;

static size_t site_bytes(uint32_t room)
{
	return room * sizeof(struct site);
}

static size_t slot_bytes(uint32_t room)
{
	return 2 * (size_t)room * sizeof(uint32_t);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static bool is_same(const struct site *a, const struct site *b)
{
	return a->kind == b->kind && a->born == b->born && a->type == b->type &&
	       a->offset == b->offset;
}

// find returns the slot of a site, or the free one where it would be.
static uint32_t *find(const struct sites *all, const struct site *key)
{
	uint64_t hash =
	    mix(mix(mix(key->kind, key->born), key->type), key->offset);

	for (;; hash++) {
		uint32_t *slot = &all->slot[hash % (2 * all->room)];

		if (*slot == 0 || is_same(&all->site[*slot - 1], key))
			return slot;
	}
}

static void free_tables(const struct sites *all)
{
	if (all->site)
		sysmem_free(all->site, site_bytes(all->room),
			    &gauges.other_sys);
	if (all->slot)
		sysmem_free(all->slot, slot_bytes(all->room),
			    &gauges.other_sys);
}

// grow makes the room twice as large.  Returns false if there is no memory.
static bool grow(void)
{
	struct sites old = sites, new = {.n = old.n};

	new.room = old.room == 0 ? ROOM_MIN : 2 * old.room;
	new.site =
	    sysmem_alloc(site_bytes(new.room), &gauges.other_sys, "tracecheck");
	new.slot =
	    sysmem_alloc(slot_bytes(new.room), &gauges.other_sys, "tracecheck");
	if (!new.site || !new.slot) {
		free_tables(&new);
		return false;
	}
	if (old.n != 0)
		memcpy(new.site, old.site, site_bytes(old.n));
	for (uint32_t i = 0; i < new.n; i++)
		*find(&new, &new.site[i]) = i + 1;
	sites = new;
	free_tables(&old);
	RT_CHECK(sites_check(&sites));
	return true;
}

// get returns a site, which it makes if it is new.  Returns NULL if there is no
// memory.
static struct site *get(const struct site *key)
{
	uint32_t *slot = sites.n == 0 ? NULL : find(&sites, key);

	if (slot && *slot != 0)
		return &sites.site[*slot - 1];
	if (sites.n == sites.room && !grow())
		return NULL;
	slot = find(&sites, key);
	sites.site[sites.n] = *key;
	*slot = ++sites.n;
	return &sites.site[sites.n - 1];
}

bool sites_note(const struct site *key, const struct site_found *found)
{
	struct site *s;

	RT_ASSERT(stw_stopped());
	s = get(key);
	if (!s)
		return false;
	if (s->found.how < found->how)
		s->found = *found;
	return true;
}

void sites_fini(void)
{
	free_tables(&sites);
	sites = (struct sites){0};
}

const char *sites_check(const struct sites *all)
{
	if ((all->room == 0) != (all->site == NULL) ||
	    (all->room == 0) != (all->slot == NULL))
		return "table of sites is not where its fields say";
	if (all->n > all->room)
		return "table of sites has more than it has room";
	for (uint32_t i = 0; i < all->n; i++) {
		if (*find(all, &all->site[i]) != i + 1)
			return "site is not where a search finds it";
		if (all->site[i].told > SITE_LOST ||
		    all->site[i].found.how > SITE_LOST)
			return "site has another state than there are";
	}
	return NULL;
}
