// Package voice is the family of slices about speech and intents: intents that people send (intents), intents that operators add (customintent), and
// results of voice requests (voice).
package voice
