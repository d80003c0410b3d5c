"""A light guess at the language of a text: by its script, then by its most frequent words and letters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

UNKNOWN = "und"
"""Too little text to tell (ISO 639's code for undetermined)."""
NAMES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese",
    "nl": "Dutch", "sv": "Swedish", "da": "Danish", "no": "Norwegian", "fi": "Finnish", "pl": "Polish", "cs": "Czech",
    "hu": "Hungarian", "ro": "Romanian", "tr": "Turkish", "vi": "Vietnamese", "id": "Indonesian", "ca": "Catalan",
    "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "th": "Thai", "ru": "Russian", "uk": "Ukrainian", "el": "Greek",
    "ar": "Arabic", "fa": "Persian", "he": "Hebrew", "hi": "Hindi", "bn": "Bengali", "ta": "Tamil", "te": "Telugu",
    "ka": "Georgian", "hy": "Armenian", "my": "Burmese", "km": "Khmer", "lo": "Lao", "am": "Amharic",
    UNKNOWN: "undetermined",
}  # fmt: skip
LETTERS = 12
"""Fewer letters than this are not judged unless their script tells."""
SIGNS = 3
"""Distinct words of a language that a text must have: "met" and "in" do not make a sentence with two names Dutch."""

_SCRIPTS = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "THAI": "th", "CJK": "zh", "CYRILLIC": "ru", "GREEK": "el",
    "ARABIC": "ar", "HEBREW": "he", "DEVANAGARI": "hi", "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te",
    "GEORGIAN": "ka", "ARMENIAN": "hy", "MYANMAR": "my", "KHMER": "km", "LAO": "lo", "ETHIOPIC": "am",
}  # fmt: skip
"""First word of a character's Unicode name → the language that script most likely writes."""

_WORDS = {
    "en": "the of and to in is was that for it with as on be by at this are from or have an which not were has had "
          "but they his her their what who where when why how did does do you we can will would there been its if",
    "de": "der die das und ist von den dem ein eine in zu mit sich auf für nicht im es des auch als an werden aus er "
          "hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor "
          "zur bis mehr durch man sein wurde wer was wann wo warum welche welcher kann ich wir ihr ihre",
    "fr": "le la les de des du et est un une en à dans que qui pour au aux sur pas par plus ne se ce il elle sont avec "
          "son sa ses mais comme ou où ont été cette ces nous vous leur quand pourquoi comment quel quelle qu",
    "es": "el la los las de del y en que un una es por con para se su al lo como más pero sus le ha o este esta fue "
          "entre cuando muy sin sobre también me hasta hay donde quien desde qué cuál cómo dónde quién no son era",
    "it": "il lo la i gli le di del della dei delle e è un una in che per con non si da sono al alla come più ma anche "
          "nel nella ha o questo questa dal dalla ed su se cui quando dove chi perché quale quali cosa era",
    "pt": "o a os as de do da dos das e em um uma que para com não no na nos nas por mais é se como ao foi à ou são "
          "seu sua mas pelo pela até isso ele ela entre quando onde quem qual quais também está era",
    "nl": "de het een en van in is dat op te zijn voor met die niet aan er om ook als bij door naar of uit was heeft "
          "maar dan over worden wordt hij zij ze nog werd tot deze wat wie waar wanneer waarom welke hoe",
    "sv": "och att det som en på är av för den med till inte om har de ett jag han var men från så kan vid eller vad "
          "vem när där hur varför vilken vilket ska hade under mycket sin efter",
    "da": "og i at det er en den til på de som med for af ikke der var et har fra men om ved eller jeg han hun hvad "
          "hvem hvor hvornår hvorfor hvilken blev kan skal være efter",
    "no": "og i det er en som på til av for at med den ikke de har et om fra var ble men seg ved eller jeg han hun hva "
          "hvem hvor når hvorfor hvilken kan skal være etter",
    "fi": "ja on ei se että oli hän mutta ovat joka kun myös niin kuin tai hänen sen mitä mikä kuka missä milloin "
          "miksi ollut olla vain jos sitten tämä",
    "pl": "w i na z nie się do jest to że o jak po co ale od za przez był dla są czy oraz przy tym jego może już tylko "
          "która który które kto gdzie kiedy dlaczego ile było",
    "cs": "a v se na je že z do s o i to k za by jako byl pro jsou jeho ale po od si jak nebo který která které co kdo "
          "kde kdy proč není při také",
    "hu": "a az és hogy nem egy is van volt ez meg de ki csak mint már vagy ha el azt még kell mi hol mikor miért "
          "milyen melyik lesz szerint",
    "ro": "și de la în a pe cu nu o un este care din să mai că pentru au fost ca sau prin al ale lui cine unde când ce "
          "cum după dar sunt",
    "tr": "ve bir bu da de için ile olarak ne çok daha olan gibi kadar sonra en mi var ama veya değil her kim nerede "
          "nasıl neden hangi ise olduğu",
    "vi": "và của là có được trong cho không một người những các với này khi đã để từ tại vào ai gì nào ở thì năm",
    "id": "yang dan di dari untuk dengan pada adalah ini itu tidak dalam ke oleh akan ada atau juga sebagai karena apa "
          "siapa mana kapan mengapa bagaimana telah lebih bisa",
    "ca": "el la els les de del i en que un una és per amb no es al als com més però seva seu són dels aquest aquesta "
          "va ser on qui quan què",
}  # fmt: skip
_LISTED: dict[str, dict[str, float]] = {}
for _language, _list in _WORDS.items():
    for _word in filter(lambda word: len(word) > 1, _list.split()):  # single letters are names and symbols, too
        _LISTED.setdefault(_word, {})[_language] = 1.0
for _shared in _LISTED.values():  # a word that many languages have says little
    for _language in _shared:
        _shared[_language] /= len(_shared) ** 0.5

_LETTERS = {
    "ß": "de", "ä": "de sv fi", "ö": "de sv fi tr hu", "ü": "de tr hu", "ñ": "es", "¿": "es", "¡": "es", "ã": "pt vi",
    "õ": "pt vi", "ç": "fr pt tr ca", "œ": "fr", "è": "fr it ca", "ê": "fr pt vi", "ù": "fr it", "å": "sv da no",
    "ø": "da no", "æ": "da no", "ł": "pl", "ą": "pl", "ę": "pl", "ż": "pl", "ś": "pl", "ř": "cs", "ě": "cs", "ů": "cs",
    "š": "cs", "č": "cs", "ő": "hu", "ű": "hu", "ă": "ro vi", "ș": "ro", "ț": "ro", "ţ": "ro", "ğ": "tr", "ı": "tr",
    "ş": "tr ro", "ơ": "vi", "ư": "vi", "đ": "vi", "ạ": "vi", "ế": "vi", "ò": "it ca", "ì": "it", "ï": "fr ca",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=1 << 16)
def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ", 1)[0]


@lru_cache(maxsize=1 << 11)
def language_of(text: str) -> str:
    """The ISO 639-1 code of the language a text is most likely in; "und" when there is too little to tell."""
    text = text[:4000]
    other = [c for c in text if not c.isascii() and c.isalpha()]
    letters = sum(c.isalpha() for c in text) if other else 0
    if other:
        scripts = Counter(_SCRIPTS[s] for c in other if (s := _script(c)) in _SCRIPTS)
        if sum(scripts.values()) * 2 >= letters or scripts.get("ja", 0) + scripts.get("zh", 0) * 3 >= letters:
            return _by_script(scripts, text)
    return _by_words(text)


def _by_script(scripts: Counter[str], text: str) -> str:
    if scripts["ja"] and scripts["ja"] + scripts["zh"] >= sum(scripts.values()) / 2:
        return "ja" if scripts["ja"] * 8 >= scripts["zh"] else "zh"
    best = scripts.most_common(1)[0][0]
    if best == "ru" and any(c in "іїєґІЇЄҐ" for c in text):
        return "uk"
    if best == "ar" and any(c in "پچژگ" for c in text):
        return "fa"
    return best


def _by_words(text: str) -> str:
    words = _WORD.findall(text.lower())
    if sum(map(len, words)) < LETTERS:
        return UNKNOWN
    points: dict[str, float] = dict.fromkeys(_WORDS, 0.0)
    signs: dict[str, set[str]] = {language: set() for language in _WORDS}
    for word in words:
        for language, weight in _LISTED.get(word, {}).items():
            points[language] += weight
            signs[language].add(word)
        for letter in () if word.isascii() else set(word):
            for language in _LETTERS.get(letter, "").split():
                points[language] += 0.5
                signs[language].add(letter)
    best, second = sorted(points, key=lambda language: points[language], reverse=True)[:2]
    if not points[best]:
        return UNKNOWN
    if best == "en" or points["en"] >= 0.95 * points[best]:
        return "en"
    enough = len(signs[best]) >= SIGNS or (any(not sign.isascii() for sign in signs[best]) and len(signs[best]) > 1)
    clear = points[best] > 1.05 * points[second] and enough
    return best if clear and points[best] >= 2 * points["en"] else UNKNOWN
