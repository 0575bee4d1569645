// Package spoken measures how well the local recogniser and the intents understand synthetic voices. Its test writes ../SPOKEN.md.
package spoken
