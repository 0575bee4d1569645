// Package trust makes and checks the metadata of releases: who vouches for which archives, until when. It is The Update Framework (theupdateframework.io) around
// the archives, which are signed in themselves; what the roles are and why is in infra/adr/0031.
//
//	root        names the keys of all roles; several people sign it, offline
//	targets     names the keys of the channels
//	prod, ...   a channel: each archive by species/version/kind, with its length and SHA-256
//	snapshot    the versions of targets and the channels that belong together
//	timestamp   the newest snapshot; it expires within days, so a robot can be kept from newer releases only for that long
//
// A robot asks for what it lacks (req/ota/trust: Question, Answer) before it installs. Original robots know nothing of it.
package trust
