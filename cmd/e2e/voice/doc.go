// Package voice tests what a person says to a robot, from the wake word to the answer and the deed, with the local recogniser and without it.
package voice
