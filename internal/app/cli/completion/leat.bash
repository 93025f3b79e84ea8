# Completion of leat for bash. Load it with: source <(leat completion bash)
_leat() {
	COMPREPLY=()
	local line
	while IFS= read -r line; do
		COMPREPLY+=("${line%%$'\t'*}")
	done < <(leat complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _leat leat
