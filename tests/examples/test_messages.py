"""The scripts on text messages accept a file or its folder, and otherwise print what they need."""

from examples.spam_filter import read
from tests.raises import refused


def test_a_file_or_a_folder_that_has_it(tmp_path):
    file = tmp_path / "SMSSpamCollection"
    refused("is not a file: pass the SMS Spam Collection", read, tmp_path, error=SystemExit)
    refused("is not a file: pass the SMS Spam Collection", read, file, error=SystemExit)
    file.write_text('ham\tsee you\nspam\twin "now"\n', encoding="utf-8")
    for path in (file, tmp_path):
        texts, labels = read(path)
        assert (texts, labels.tolist()) == (["see you", 'win "now"'], ["ham", "spam"])
