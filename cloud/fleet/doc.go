// Package fleet is the family of slices about robots as a fleet: which there are and how each is (registry, vitals, liveview), what they are told to do
// (command, bulk), which of them belong together (cohort), and which programs hear of it (webhook).
package fleet
