// Package companion is the owners' web pages, phone first: my robots and how they are in words, claim one by the code that it shows, give it a
// name, hand it on or let it go, the apps that may talk to it; my sessions, everything that is held about me, and leaving.
//
// Pages are made on the server and need no script; a little one shows times in the reader's zone. What pages do is what the public API does
// (/v1/my, /v1/account), by the same services. Other people's robots answer as unknown ones.
//
//	companion.go  Mount, sign in and out     robots.go  robots and what one does with them     account.go  the person     words.go  state in words
package companion
