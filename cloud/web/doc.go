// Package web is the family of the web pages for people: those of operators (console) and those of owners (companion).
package web
