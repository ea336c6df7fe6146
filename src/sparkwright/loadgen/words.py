"""Words that made-up texts are put together from. Short common ones, so that most tokenizers know them whole."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


PEOPLE = _words(
    "engineer teacher captain doctor farmer baker painter writer judge pilot nurse driver clerk miner sailor tailor "
    "merchant gardener librarian carpenter musician reporter student ranger mechanic architect surgeon astronomer "
    "translator inspector shepherd potter weaver blacksmith botanist photographer editor chemist plumber watchmaker"
)
NAMES = _words(
    "Anna Peter Maria Jonas Clara Simon Elena Victor Laura Martin Sofia Daniel Alice Robert Julia Thomas Helen Oscar "
    "Irene Walter Nora Felix Emma Hugo Rosa Albert Vera Leon Greta Marcus Ida Samuel Lucy Arthur Olga Henry"
)
PLACES = _words(
    "harbor market library station museum valley village factory garden theater airport bridge castle island forest "
    "kitchen office hospital school tower warehouse workshop studio cellar courtyard lighthouse orchard quarry mill "
    "port canal railway cathedral farm clinic laboratory archive barn dock square"
)
THINGS = _words(
    "letter machine report map engine window table clock bottle camera ladder wheel basket lantern notebook painting "
    "rope mirror drum violin hammer compass bell key coin blanket kettle saddle sail lens pump wire battery magnet "
    "ticket ledger parcel statue carpet contract blueprint timetable recipe photograph instrument cable generator"
)
IDEAS = _words(
    "plan question answer reason method theory promise warning agreement mistake rumor schedule budget proposal custom "
    "law habit price measurement result experiment forecast debt tradition rule secret risk memory story argument "
    "delay journey season repair lesson discovery election harvest flood strike"
)
KINDS = _words(
    "old new small large quiet bright heavy narrow simple strange careful broken early late warm cold empty famous "
    "local wooden gray green yellow blue long short distant useful fragile modern ancient steady rough clever honest "
    "silent crowded hidden ordinary expensive temporary reliable unusual faint generous stubborn"
)
DID = _words(
    "found moved carried repaired painted described opened closed measured sold bought borrowed counted cleaned hid "
    "noticed copied praised examined dropped packed delivered returned replaced drew studied forgot mentioned "
    "inspected polished collected exchanged recorded photographed compared restored guarded abandoned remembered"
)
WENT = _words(
    "walked traveled hurried returned wandered sailed drove climbed waited worked slept rested listened argued talked "
    "stayed stopped arrived lived gathered danced laughed studied marched camped"
)
HOW = _words(
    "slowly quickly quietly carefully suddenly often rarely calmly proudly gladly finally gently badly openly firmly "
    "nervously patiently politely reluctantly cheerfully secretly together alone again twice"
)
WHEN = _phrases(
    "in the morning|at noon|after the storm|before dinner|during the winter|on the second day|late in autumn|"
    "at the end of the week|some years ago|just before midnight|when the rain stopped|as soon as the doors opened|"
    "on a Sunday in spring|after a long silence|by the middle of June|while the others slept|at the first light|"
    "once the work was done|on the way home|long after the war|in the same hour|between two meetings"
)
WHERE = _phrases(
    "near the river|behind the church|on the hill|across the border|under the bridge|at the edge of the town|"
    "by the sea|along the old road|in the north|on the upper floor|next to the well|inside the walls|"
    "beyond the last houses|at the foot of the mountain|in the back room|on the other side of the bay|"
    "between the two rivers|above the shop"
)
NUMBERS = _words("two three four five six seven eight nine ten twelve fifteen twenty thirty forty fifty sixty ninety")
VERBS = _words("load parse merge count find check build send read write split sort group filter update remove")
FIELDS = _words("size name count total price weight index state owner level start end limit color length")

# Words that stand alone, each of at most six letters: with a space in front, one token in nearly every vocabulary.
COMMON = _words(
    "time year people way day man thing woman life child world school state family group hand part place case week "
    "system point number night water room mother area money story fact month right study book eye job word issue side "
    "kind head house friend father power hour game line end member law car city name team minute idea body back "
    "parent face others level office door health person art war party result change reason moment air force "
    "food order price field table music street paper space ground form event matter center stage model road wall "
    "light sound voice color bank letter stone river hill ship wind summer winter spring garden green blue black "
    "white small large long short high early young old new good great little public local"
)
LETTERS = _words("a b c d e f g h i j k l m n o p q r s t u v w x y z")
