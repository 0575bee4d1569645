// Package lives tests what a robot and its owner go through from beginning to end, among it every way of an update.
package lives
