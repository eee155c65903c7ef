// sites.h - the places that tracecheck has found.
//
// Go: none.
//
// A site is a place in the objects of one kind and type, whatever object it was
// found in.  It is reported when more is wrong with it than was reported before
// (enum site_target).  Sites are kept for as long as the heap lives.  A kind
// that is registered anew has new sites.
//
// Only the thread that has stopped the world uses them.
#ifndef GC_MARK_SITES_H
#define GC_MARK_SITES_H

#include "runtime/base/base.h"

// What is known of the object that a site leads to, the worst last.
enum site_target {
	SITE_NONE,
	SITE_IGNORED, // a callback tells it, but RT_KIND_BASE ignores that
	SITE_REACHED, // something else reaches it as well
	SITE_LOST,    // nothing else does
};

// The offset of what a callback tells and no word has.
#define SITE_NOWHERE UINT64_MAX

// Where a site was found.
struct site_found {
	uintptr_t obj;
	uint64_t at; // offset of the word, or SITE_NOWHERE
	uintptr_t target;
	uint8_t how; // enum site_target
};

struct site {
	unsigned kind;
	uint32_t born;		 // of the kind's layout
	uint64_t type;		 // key of the type (type_key)
	uint64_t offset;	 // in the tail: as in its first element
	uint8_t told;		 // enum site_target: the most that was reported
	struct site_found found; // in this collection
};

struct sites {
	struct site *site;
	uint32_t *slot; // hash table of numbers of sites + 1; twice the room
	uint32_t n;
	uint32_t room;
};

RT_GLOBAL struct sites sites;

// sites_note notes that a site was found; all its fields up to offset identify
// it.  If a site is found several times in one collection, the worst find is
// kept (enum site_target), and of equally bad ones the first.  Returns false if
// the system refuses memory.
bool sites_note(const struct site *key, const struct site_found *found);

// sites_fini frees all sites.
void sites_fini(void);

// sites_check returns NULL if all invariants hold, otherwise what does not.
const char *sites_check(const struct sites *all);

#endif
