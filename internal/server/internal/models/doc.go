// Package models has what the model APIs share: agents as models, pictures in requests, and errors in OpenAI's format.
package models
