// Package companion is the owners' web pages, phone first: my robots and how they are in words, claim one by the code that it shows, give it a
// name, set it up and see whether it has taken that, its life in numbers, hand it on or let it go, the apps that may talk to it; my sessions,
// all data held about me, and leaving.
//
// Pages are made on the server and need no script; a little one shows times in the reader's zone and keeps a page true while one looks at it (live.go
// says when something changed). Pages do what the public API does (/v1/my, /v1/account, /v1/things/{thing}/jdocs), by the same services.
// Other people's robots answer as unknown ones.
//
//	companion.go  Mount, sign in and out     robots.go  robots and what one does with them     settings.go  what it shall be like, and whether it is
//	account.go    the person, privacy        words.go   state in words                         life.go      statistics       zones/  time zones by place
package companion
