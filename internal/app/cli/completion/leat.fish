# Completion of leat for fish. Save it in ~/.config/fish/completions/leat.fish
function __leat_complete
	set -l words (commandline -opc) (commandline -ct)
	leat complete -- $words[2..-1] 2>/dev/null
end
complete -c leat -n '__leat_complete | string length -q' -f -a '(__leat_complete)'
